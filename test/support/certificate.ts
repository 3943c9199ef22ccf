/**
 * A certificate that signs itself, for 127.0.0.1, and its key, as PEM files.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { requireProgram } from './debian.js';

/** Writes cert.pem and key.pem anew. @param name tells one certificate from the next */
export function makeCertificate(folder: string, name: string): { tlsCert: string; tlsKey: string } {
  const tlsCert = join(folder, 'cert.pem');
  const tlsKey = join(folder, 'key.pem');
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const out = ['-keyout', tlsKey, '-out', tlsCert, '-days', '2'];
  execFileSync(requireProgram('openssl'), ['req', '-x509', ...key, ...subject, ...out], {
    stdio: 'ignore',
  });
  return { tlsCert, tlsKey };
}

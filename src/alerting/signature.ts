/**
 * How a webhook knows that a message is ours, and new: the Standard Webhooks specification 1.0.
 *
 * `webhook-id` stays the same when a message is sent again; `webhook-timestamp` is when it was sent,
 * in epoch seconds; `webhook-signature` is `v1,` and the HMAC-SHA256 of `id.timestamp.body`, in
 * base64.
 */
import { createHmac } from 'node:crypto';

const PREFIX = 'whsec_';

/** The key of a secret: after `whsec_` it is base64, else its bytes are the key. */
export function signingKey(secret: string): Buffer {
  return secret.startsWith(PREFIX)
    ? Buffer.from(secret.slice(PREFIX.length), 'base64')
    : Buffer.from(secret);
}

export function signatureHeaders(
  id: string,
  nowMs: number,
  body: string,
  key: Buffer | undefined,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const unsigned = { 'webhook-id': id, 'webhook-timestamp': timestamp };
  if (key === undefined) return unsigned;
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { ...unsigned, 'webhook-signature': `v1,${mac}` };
}

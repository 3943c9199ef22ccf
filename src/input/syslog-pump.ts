/**
 * A unix datagram socket, which Node cannot open: a small Perl program receives for it.
 *
 * nginx sends to `syslog:server=unix:PATH` by datagrams only. The native packages for them need a
 * compiler at installation; Perl with its Socket module is part of every Debian. The program binds
 * the path, or takes over a socket that systemd opened, and writes each datagram to its standard
 * output behind its length. It ends when its standard input does, so also when we are killed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';

/** Lengths are 32 bits, little-endian; the first frame is empty and says that it listens. */
const PROGRAM = String.raw`
use strict; use Socket;
my ($kind, $path, $mode, $size) = @ARGV;
my $socket;
if ($kind eq 'descriptor') {
  open($socket, '+<&=', 3) or fail('descriptor');
} else {
  socket($socket, AF_UNIX, SOCK_DGRAM, 0) or fail('socket');
  my $address = pack_sockaddr_un($path);
  if (-S $path) {
    socket(my $other, AF_UNIX, SOCK_DGRAM, 0) or fail('socket');
    if (connect($other, $address)) { $! = 98; fail('bind') }
    unlink $path;
  }
  my $mask = umask(0777 & ~oct($mode));
  bind($socket, $address) or fail('bind');
  umask($mask);
}
setsockopt($socket, SOL_SOCKET, SO_RCVBUF, pack('l', $size));
sub fail { print STDERR "$_[0]: $!\n"; exit 1 }
sub put { my ($text) = @_; my $at = 0;
  while ($at < length $text) { my $n = syswrite(STDOUT, $text, length($text) - $at, $at);
    finish() unless defined $n; $at += $n } }
sub finish { unlink $path if $kind ne 'descriptor'; exit 0 }
$SIG{TERM} = $SIG{INT} = 'IGNORE'; $SIG{PIPE} = 'IGNORE';
put(pack('V', 0));
while (1) {
  my $wanted = ''; vec($wanted, fileno(STDIN), 1) = 1; vec($wanted, fileno($socket), 1) = 1;
  next if select(my $ready = $wanted, undef, undef, undef) < 1;
  if (vec($ready, fileno($socket), 1)) {
    my $data; next unless defined recv($socket, $data, 65536, 0);
    put(pack('V', length $data) . $data) if length $data;
  } elsif (vec($ready, fileno(STDIN), 1)) { finish() unless sysread(STDIN, my $none, 1) }
}
`;

export type DatagramSocket =
  | { readonly kind: 'path'; readonly path: string; readonly mode: string }
  /** Opened by systemd (`ListenDatagram=`) and handed down. */
  | { readonly kind: 'descriptor'; readonly fd: number };

/** A running pump. Made by startPump(). */
export class DatagramPump {
  readonly #child: ChildProcess;
  readonly #onDatagram: (bytes: Uint8Array) => void;
  #left = Buffer.alloc(0);

  constructor(child: ChildProcess, onDatagram: (bytes: Uint8Array) => void) {
    this.#child = child;
    this.#onDatagram = onDatagram;
  }

  /** Cuts what the program wrote into datagrams. @returns how many frames, empty ones too */
  take(chunk: Buffer): number {
    const bytes = this.#left.length === 0 ? chunk : Buffer.concat([this.#left, chunk]);
    let at = 0;
    let frames = 0;
    while (bytes.length - at >= 4) {
      const end = at + 4 + bytes.readUInt32LE(at);
      if (end > bytes.length) break;
      if (end > at + 4) this.#onDatagram(bytes.subarray(at + 4, end));
      at = end;
      frames++;
    }
    this.#left = Buffer.from(bytes.subarray(at));
    return frames;
  }

  /** Removes the socket once everything received has been handed on. */
  async stop(): Promise<void> {
    const closed = once(this.#child, 'close');
    this.#child.stdin?.end();
    await closed;
  }
}

/**
 * Starts receiving.
 *
 * @param onEnd called when the program ends without stop()
 * @throws Error with the program's words when the socket cannot be had
 */
export async function startPump(
  socket: DatagramSocket,
  bufferBytes: number,
  onDatagram: (bytes: Uint8Array) => void,
  onEnd: (reason: string) => void,
): Promise<DatagramPump> {
  const own = socket.kind === 'path' ? [socket.path, socket.mode] : ['', '0'];
  const child = spawn('perl', ['-e', PROGRAM, socket.kind, ...own, String(bufferBytes)], {
    stdio: ['pipe', 'pipe', 'pipe', socket.kind === 'descriptor' ? socket.fd : 'ignore'],
  });
  const pump = new DatagramPump(child, onDatagram);
  let words = '';
  let isListening = false;
  child.stderr!.on('data', (chunk: Buffer) => (words += chunk.toString('latin1')));
  await new Promise<void>((resolve, reject) => {
    (child.stdout as Readable).on('data', (chunk: Buffer) => {
      if (pump.take(chunk) === 0) return;
      isListening = true;
      resolve();
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      const isMissing = error.code === 'ENOENT';
      reject(isMissing ? new Error('it needs perl, which is not installed') : error);
    });
    child.once('close', () => {
      if (isListening) onEnd(words.trim());
      else reject(new Error(words.trim()));
    });
  });
  return pump;
}

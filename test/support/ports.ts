/**
 * Free TCP ports on the loopback address.
 */
import { createServer, type Server } from 'node:net';

/** `count` different ports, free a moment ago: whoever binds them must be ready to try again. */
export async function pickPorts(count: number): Promise<readonly number[]> {
  // All are held open until the last is found, or the kernel could hand one out twice.
  const servers = await Promise.all(Array.from({ length: count }, listen));
  const ports = servers.map(portOf);
  await Promise.all(servers.map(close));
  return ports;
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      resolve(server);
    });
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('server has no TCP address');
  return address.port;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
  });
}

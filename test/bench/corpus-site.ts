/**
 * The site whose traffic the benchmark's corpus is: its nginx configuration, clients and pages.
 *
 * Addresses are from the documentation and private ranges (RFC 5737, 1918, 3849), names end in
 * .example. Units: bytes, milliReq and milliRps, as in src/limit-req.
 */
export const ZONE = { name: 'perip', sizeBytes: 10 * 1024 * 1024, rateMilliRps: 10_000 } as const;

export const LIMIT = { zone: 0, burstMilliReq: 20_000, delayMilliReq: 0 } as const;

export const REJECT_HTTP_STATUS = 429;

/** The log_format: combined, and behind it what a replay likes to have. $status is word 9. */
export const LOG_FORMAT =
  '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent ' +
  '"$http_referer" "$http_user_agent" $msec $request_time $upstream_response_time ' +
  '$upstream_status $limit_req_status $limit_conn_status $connection';

/** The same for GoAccess: what it has no use for is skipped. */
export const GOACCESS_FORMAT = '%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %^ %T %^';

export const NGINX_CONF = `worker_processes 1;
events { worker_connections 4096; }
http {
  log_format timed '${LOG_FORMAT}';
  access_log /var/log/nginx/access.log timed;

  limit_req_zone $binary_remote_addr zone=${ZONE.name}:${ZONE.sizeBytes / 1024 / 1024}m rate=${ZONE.rateMilliRps / 1000}r/s;
  limit_req_status ${REJECT_HTTP_STATUS};

  upstream app { server 127.0.0.1:8081; }
  server {
    listen 8080;
    server_name shop.example;
    location / {
      limit_req zone=${ZONE.name} burst=${LIMIT.burstMilliReq / 1000};
      proxy_pass http://app;
    }
  }
}
`;

export interface Client {
  /** As nginx prints it. */
  readonly address: string;
  /** Of $binary_remote_addr. */
  readonly keyLengthBytes: number;
  readonly userAgent: string;
}

const DOCUMENTATION_NETS = ['192.0.2', '198.51.100', '203.0.113'];
const DOCUMENTATION_HOSTS = DOCUMENTATION_NETS.length * 254;
const SPREAD = 0x9e3779b1;

/** Every rank has another address; one in ten is IPv6, the busiest are documentation addresses. */
export function makeClient(rank: number): Client {
  const userAgent = USER_AGENTS[rank % USER_AGENTS.length]!;
  if (rank % 10 === 9) {
    const subnet = `${hex(1 + (rank >>> 8))}:${hex(0x100 + (rank & 0xff))}`;
    return { address: `2001:db8:${subnet}::1`, keyLengthBytes: 16, userAgent };
  }
  return { address: ipv4Of(rank), keyLengthBytes: 4, userAgent };
}

function ipv4Of(rank: number): string {
  if (rank < DOCUMENTATION_HOSTS) {
    const net = DOCUMENTATION_NETS[rank % DOCUMENTATION_NETS.length]!;
    return `${net}.${1 + Math.floor(rank / DOCUMENTATION_NETS.length)}`;
  }
  // Multiplying by an odd number moves every rank to another place of 10.0.0.0/8.
  const host = Math.imul(rank, SPREAD);
  return `10.${(host >>> 16) & 0xff}.${(host >>> 8) & 0xff}.${host & 0xff}`;
}

function hex(value: number): string {
  return value.toString(16);
}

const USER_AGENTS = [
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15',
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36',
  'Mozilla/5.0 (compatible; shopbot/2.1; +https://bot.example/about)',
  'shop-app/7.3 (build 4411)',
  'python-requests/2.32.3',
];

/** `"METHOD target protocol"` without the quotes, drawn from `draw` below a bound. */
export function makeRequestLine(draw: (bound: number) => number): string {
  switch (draw(8)) {
    case 0:
      return `GET /search?q=article+${draw(5000)}&page=${1 + draw(9)} HTTP/1.1`;
    case 1:
      return `POST /api/v1/carts/${draw(90_000)}/items HTTP/1.1`;
    case 2:
      return `GET /assets/app-${draw(40)}.js HTTP/1.1`;
    case 3:
      return 'GET / HTTP/1.1';
    default:
      return `GET /catalogue/item-${10_000 + draw(20_000)}?view=full HTTP/1.1`;
  }
}

export function makeReferer(draw: (bound: number) => number): string {
  switch (draw(4)) {
    case 0:
      return '-';
    case 1:
      return 'https://shop.example/';
    default:
      return `https://shop.example/catalogue/${draw(300)}`;
  }
}

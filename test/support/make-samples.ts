/**
 * Records samples/ with a real nginx: `node dist/test/support/make-samples.js`, 80 seconds.
 *
 * What is written is what nginx logged, byte for byte; only the directories of the configuration
 * differ while recording. Ports 8080 and 8081 of the loopback address must be free.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { readDebugTruth } from './debug-truth.js';
import { type Nginx, startNginx } from './nginx.js';
import { APP_PORT, SITE_CONF, SITE_HTTP, SITE_PORT, siteSchedule } from './sample-site.js';
import { samplesReadme } from './sample-readme.js';
import { sendTraffic } from './traffic.js';

/** The application behind nginx: it has latency, a quota and a broken export. */
async function startApp(): Promise<Server> {
  let searches = 0;
  const app = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    if (path === '/v1/search') searches += 1;
    const status =
      path === '/v1/export'
        ? 503
        : path === '/v1/search' && searches > 10
          ? 429
          : loginStatus(path);
    request.resume();
    // Longer for long paths: any rule will do that makes answers overlap and is not random.
    setTimeout(
      () => {
        response.writeHead(status, { 'content-type': 'text/plain' }).end(`${status}\n`);
      },
      (path.length * 7) % 60,
    );
  });
  app.listen(APP_PORT, '127.0.0.1');
  await once(app, 'listening');
  return app;
}

function loginStatus(path: string): number {
  return path === '/login' ? 401 : 200;
}

function fillSite(nginx: Nginx): void {
  for (const folder of ['products', 'static', 'downloads']) mkdirSync(nginx.path(`html/${folder}`));
  for (let i = 1; i <= 40; i += 1) {
    writeFileSync(nginx.path(`html/products/${i}.html`), `<h1>Product ${i}</h1>\n`.repeat(i));
    writeFileSync(nginx.path(`html/static/${i}.png`), Buffer.alloc(300 + i * 50, i));
  }
  for (let i = 1; i <= 4; i += 1) {
    writeFileSync(nginx.path(`html/downloads/catalogue-${i}.pdf`), Buffer.alloc(150_000 * i, 32));
  }
}

/** The site's configuration with other paths, and a debug log beside its error log. */
function recordingConf(dir: string): string {
  return SITE_HTTP.replace('error_log ', `error_log ${dir}/debug.log debug;\n  error_log `)
    .replaceAll('/var/log/nginx/', `${dir}/site-`)
    .replaceAll('/var/www/shop', `${dir}/html`);
}

async function record(): Promise<void> {
  const cleanups: (() => void | Promise<void>)[] = [];
  const app = await startApp();
  try {
    const nginx = await startNginx(
      { after: (fn) => void cleanups.push(fn) },
      {
        ports: [SITE_PORT],
        workers: 2,
        http: (_ports, dir) => recordingConf(dir),
      },
    );
    fillSite(nginx);
    await sendTraffic(SITE_PORT, siteSchedule());
    await nginx.stop();
    const truth = readDebugTruth(readFileSync(nginx.path('debug.log'), 'latin1'));
    const accessLog = readFileSync(nginx.path('site-access.log'), 'latin1');
    writeFileSync('samples/nginx.conf', SITE_CONF);
    writeFileSync('samples/access.log', accessLog, 'latin1');
    copyFileSync(nginx.path('site-error.log'), 'samples/error.log');
    writeFileSync('samples/README.md', samplesReadme(accessLog, truth));
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
    app.close();
    app.closeAllConnections();
  }
}

await record();

# limitlens with the embedded engine. Not built by those who wrote it: no container engine runs on
# their machines.
FROM node:20-bookworm-slim
WORKDIR /opt/limitlens
COPY package.json package-lock.json tsconfig.json tsconfig.page.json ./
COPY src ./src
COPY parsers ./parsers
COPY dashboards ./dashboards
COPY alerts ./alerts
COPY test ./test
RUN npm ci && npm prune --omit=dev --ignore-scripts && npm cache clean --force
RUN install -d -o node -g adm /var/lib/limitlens
# Logs belong to group adm.
USER node:adm
WORKDIR /var/lib/limitlens
# Decides all that waits and stores it, within 60 s: docker stop --time 75.
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "/opt/limitlens/dist/src/cli.js"]

/**
 * Listens for news of the store. A connection that breaks is made again by the browser.
 */
export interface FeedEvents {
  readonly onVersion: (version: string) => void;
  readonly onConnection: (isConnected: boolean) => void;
}

export function listen({ onVersion, onConnection }: FeedEvents): void {
  let source: EventSource | undefined;
  const open = (): void => {
    source?.close();
    source = new EventSource('./api/live');
    source.addEventListener('open', () => onConnection(true));
    source.addEventListener('error', () => onConnection(false));
    source.addEventListener('version', (event) => onVersion(String(event.data)));
  };
  // A page that nobody looks at asks for nothing.
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') open();
    else source?.close();
  });
  open();
}

/**
 * Asks the API. Paths are relative to the page, so that a prefix of a proxy stays.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** @throws ApiError with what the API said, or that it can't be reached; AbortError */
export async function ask<T>(
  path: string,
  query: URLSearchParams = new URLSearchParams(),
  signal: AbortSignal | null = null,
): Promise<T> {
  const text = query.toString();
  const address = `./api/${path}${text === '' ? '' : `?${text}`}`;
  let response: Response;
  try {
    response = await fetch(address, { signal, headers: { Accept: 'application/json' } });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new ApiError(0, 'limitlens does not answer. Is it still running?');
  }
  const body = (await response.json().catch(() => null)) as (T & { error?: string }) | null;
  if (response.ok && body !== null) return body;
  throw new ApiError(response.status, body?.error ?? `limitlens answered ${response.status}`);
}

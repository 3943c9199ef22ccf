/**
 * What the page shows, as its address says it: which dashboard, which time, which values.
 *
 * `zones?from=now-1h&to=now&zone=per_ip&zone=login`. A variable that is not there is All. Times are
 * those of the API; without them the page chooses (time-range.ts).
 */
export interface ViewState {
  /** A dashboard's name, or `example`. */
  readonly page: string;
  readonly from: string | null;
  readonly to: string | null;
  /** Variable, or field of an example, to its values. */
  readonly values: Readonly<Record<string, readonly string[]>>;
}

export const HOME = 'overview';

/** @param pathname of the page's address: its last part names what is shown */
export function parseState(pathname: string, search: string): ViewState {
  const query = new URLSearchParams(search);
  const values: Record<string, string[]> = {};
  for (const name of new Set(query.keys())) {
    if (name !== 'from' && name !== 'to') values[name] = query.getAll(name);
  }
  return {
    page: pathname.split('/').at(-1) || HOME,
    from: query.get('from'),
    to: query.get('to'),
    values,
  };
}

/** An address relative to the page's own folder, so that a prefix of a proxy stays. */
export function addressOf(state: ViewState): string {
  const query = queryOf(state).toString();
  return query === '' ? `./${state.page}` : `./${state.page}?${query}`;
}

/** Time and values as parameters, for addresses and for the API. */
export function queryOf({ from, to, values }: Omit<ViewState, 'page'>): URLSearchParams {
  const query = new URLSearchParams();
  if (from !== null) query.set('from', from);
  if (to !== null) query.set('to', to);
  for (const [name, list] of Object.entries(values)) {
    for (const value of list) query.append(name, value);
  }
  return query;
}

/** The state with some values changed; an empty list is All. */
export function withValues(
  state: ViewState,
  changed: Readonly<Record<string, readonly string[]>>,
): ViewState {
  const all = Object.entries({ ...state.values, ...changed });
  return { ...state, values: Object.fromEntries(all.filter(([, list]) => list.length > 0)) };
}

/** A plain name as the value of a variable: the catalogue's encoding. */
export function valueOf(name: string): string {
  return encodeURIComponent(name).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The name that a value stands for. */
export function nameOf(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

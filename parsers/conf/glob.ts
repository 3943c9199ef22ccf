/**
 * Patterns of `include`, as glob(3) takes them: `*`, `?`, `[…]` and a backslash.
 *
 * No wildcard stands for a slash, nor for the dot that begins a file's name.
 */

/** nginx asks the same question before it calls glob(3) at all. */
export function hasWildcard(path: string): boolean {
  return /[*?[]/.test(path);
}

/** One path segment as a RegExp over a file name. */
export function segmentPattern(segment: string): RegExp {
  let source = /^[*?[]/.test(segment) ? '^(?!\\.)' : '^';
  for (let i = 0; i < segment.length; i++) {
    const ch = segment.charAt(i);
    const bracket = ch === '[' ? /^\[([!^]?)(\]?[^\]]*)\]/.exec(segment.slice(i)) : null;
    if (ch === '*') source += '[^/]*';
    else if (ch === '?') source += '[^/]';
    else if (bracket !== null) {
      source += bracketSource(bracket[1] !== '', bracket[2]!);
      i += bracket[0].length - 1;
    } else if (ch === '\\' && i + 1 < segment.length) {
      source += escapeLiteral(segment.charAt(++i));
    } else source += escapeLiteral(ch);
  }
  return new RegExp(`${source}$`);
}

/** Whether a path of a `nginx -T` dump is one that the pattern stands for. */
export function matchesGlob(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const found = path.split('/');
  return (
    wanted.length === found.length &&
    wanted.every((segment, i) => segmentPattern(segment).test(found[i]!))
  );
}

/** A range out of order holds nothing. */
function bracketSource(isNegated: boolean, members: string): string {
  const inOrder = members.replace(/(.)-(.)/gs, (range, low: string, high: string) =>
    low <= high ? range : '',
  );
  return `[${isNegated ? '^' : ''}${inOrder.replace(/[\\\]^[]/g, '\\$&')}]`;
}

function escapeLiteral(ch: string): string {
  return ch.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

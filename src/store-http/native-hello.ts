/**
 * The one block of the Native format that is made here: the answer to what clickhouse-go asks when it
 * connects, as it comes with Grafana's ClickHouse data source.
 *
 * That client reads this first answer as its own newest revision of the native protocol (with a
 * header per block and a byte per column), and all later ones as the revision named in it. The
 * embedded engine writes blocks without either, which is revision 0: so that is what is named.
 */
const HELLO =
  /^\s*SELECT\s+displayName\(\)\s*,\s*version\(\)\s*,\s*revision\(\)\s*,\s*timezone\(\)\s*;?\s*$/i;

/** From this revision on there is a byte per column. */
export const BYTE_PER_COLUMN_REVISION = 54_454;
/** Field 1: no overflow; field 2: bucket -1; then the end. */
const BLOCK_HEADER = Buffer.from([1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0]);
const NO_CUSTOM_FORM = 0;

export function isHello(sql: string): boolean {
  return HELLO.test(sql);
}

export interface Hello {
  readonly displayName: string;
  readonly version: string;
  readonly timezone: string;
}

export function helloBlock({ displayName, version, timezone }: Hello): Buffer {
  const revision = Buffer.alloc(4);
  const columns: readonly [string, string, Buffer][] = [
    ['displayName()', 'String', text(displayName)],
    ['version()', 'String', text(version)],
    ['revision()', 'UInt32', revision],
    ['timezone()', 'String', text(timezone)],
  ];
  return Buffer.concat([
    BLOCK_HEADER,
    Buffer.from([columns.length, 1]),
    ...columns.flatMap(([name, type, value]) => [
      text(name),
      text(type),
      Buffer.from([NO_CUSTOM_FORM]),
      value,
    ]),
  ]);
}

/** A length as varint, then the bytes. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length: number[] = [];
  let rest = bytes.length;
  for (; rest > 0x7f; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

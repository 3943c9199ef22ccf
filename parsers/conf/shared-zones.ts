/**
 * Shared memory zones by name, as ngx_shared_memory_add() keeps them.
 *
 * A zone may be used before it is declared, and whether it ever was is only asked at the end.
 * Sizes are bytes.
 */
import { ConfError } from './conf-error.js';
import { refuse } from './level.js';
import type { Directive } from './lexer.js';
import type { ConfWhere, LimitConnZone, LimitReqZone } from './model.js';

type ZoneUse = 'limit_req' | 'limit_conn';

interface SharedZone {
  readonly use: ZoneUse;
  readonly firstWhere: ConfWhere;
  sizeBytes: bigint;
}

export class SharedZones {
  readonly reqZones = new Map<string, LimitReqZone>();
  readonly connZones = new Map<string, LimitConnZone>();
  private readonly zones = new Map<string, SharedZone>();

  /**
   * Names a zone, with its size where it is declared and 0 where it is used.
   *
   * @throws ConfError when the name has another use or another size already
   */
  add(directive: Directive, use: ZoneUse, name: string, sizeBytes: bigint): void {
    const known = this.zones.get(name);
    if (known === undefined) {
      this.zones.set(name, { use, firstWhere: directive.where, sizeBytes });
      return;
    }
    if (known.use !== use) {
      refuse(directive, `the shared memory zone "${name}" is already declared for a different use`);
    }
    if (known.sizeBytes === 0n) known.sizeBytes = sizeBytes;
    if (sizeBytes !== 0n && sizeBytes !== known.sizeBytes) {
      refuse(
        directive,
        `the size ${sizeBytes} of shared memory zone "${name}" ` +
          `conflicts with already declared size ${known.sizeBytes}`,
      );
    }
  }

  /** The check of ngx_init_cycle(), once everything has been read. */
  requireSizes(): void {
    for (const [name, zone] of this.zones) {
      if (zone.sizeBytes === 0n) {
        throw new ConfError(zone.firstWhere, `zero size shared memory zone "${name}"`);
      }
    }
  }
}

/**
 * What is marked on the time line of every dashboard over the store.
 */
import { OF_INSTANCES } from './conditions.js';
import type { Annotation } from './panel.js';

export const ANNOTATIONS: readonly Annotation[] = [
  {
    id: 'marks',
    title: 'Reloads and restarts',
    colour: 'yellow',
    sql: `SELECT time, concat(mark, if(details = '', '', ': '), details) AS text, instance AS tags
FROM marks
WHERE ${OF_INSTANCES}
  AND $__timeFilter(time)
ORDER BY time LIMIT 200`,
  },
  {
    id: 'findings',
    title: 'Findings',
    colour: 'red',
    sql: `SELECT since AS time, until AS timeEnd, message AS text, code AS tags
FROM findings FINAL
WHERE ${OF_INSTANCES}
  AND since <= $__toTime AND until >= $__fromTime
ORDER BY time LIMIT 200`,
  },
];

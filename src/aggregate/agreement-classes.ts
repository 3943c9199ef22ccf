/**
 * How the replay's verdict compares with what nginx logged: the words of the `class` column.
 *
 * Every limit asked for a request of known outcome counts in exactly one of AGREEMENT_WORDS; so they
 * add up. EXPLAINED is counted beside them, for each limit whose logged outcome lies within the
 * bounds of the replay: the share explained is `explained / (all − not_logged)`.
 *
 * Not here: which class a request is in (agreement.ts).
 */
export const AGREEMENT_WORDS = [
  'agree',
  'not_logged',
  'late',
  'timestamp_resolution',
  'eviction',
  'order',
  'warm_up',
  'configuration_differs',
  'key_not_derivable',
  'rule_unknown',
  'unexplained',
  'explained',
] as const;

export type AgreementWord = (typeof AGREEMENT_WORDS)[number];

/** Counted in addition to a class, not instead of one. */
export const EXPLAINED: AgreementWord = 'explained';

/** Position of each word in AGREEMENT_WORDS. */
export const AGREEMENT: Readonly<Record<AgreementWord, number>> = {
  agree: 0,
  not_logged: 1,
  late: 2,
  timestamp_resolution: 3,
  eviction: 4,
  order: 5,
  warm_up: 6,
  configuration_differs: 7,
  key_not_derivable: 8,
  rule_unknown: 9,
  unexplained: 10,
  explained: 11,
};

/** For people: what each word means. */
export const AGREEMENT_MEANINGS: Readonly<Record<AgreementWord, string>> = {
  agree: 'the replay decided as nginx logged it',
  not_logged: 'the log does not tell what nginx decided',
  late: 'logged later after its decision than lateness allows',
  timestamp_resolution: 'within what the times in the log leave open',
  eviction: 'the full zone may or may not still have known the key',
  order: 'requests of one key came too close together to be put in order',
  warm_up: 'the key may have been in debt before the log begins',
  configuration_differs: 'the log shows another burst than the configuration',
  key_not_derivable: 'the log lacks a field that a key is made of',
  rule_unknown: 'limited in a location that the log does not tell',
  unexplained: 'none of these',
  explained: 'the logged outcome is one that the replay holds possible',
};

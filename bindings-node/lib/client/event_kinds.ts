/** Numbers shared with the addon. */

/** Kinds of events of a client; as in `src/client/events.rs`. */
export const About = {
  Progress: 0,
  Elicit: 1,
  Sample: 2,
  Roots: 3,
  Withdrawn: 4,
  Told: 5,
  Stderr: 6,
  Connection: 7,
  RequestEnded: 8,
  Auth: 10,
  Request: 11,
} as const;

/** Flags of a request; as in `src/client/handle.rs`. */
export const Flag = { ReportsProgress: 1, MayEnd: 2, IsTraced: 4 } as const;

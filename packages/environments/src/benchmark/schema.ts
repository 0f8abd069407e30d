import { z } from 'zod';

/** The longest wait of one step, s. OpenEnv's clients give up on a reply after as long. */
export const LONGEST_WAIT_S = 60;

/** How long the server takes to answer. */
export const benchmarkActionSchema = z
  .strictObject({
    wait_seconds: z
      .number()
      .min(0)
      .max(LONGEST_WAIT_S)
      .default(0)
      .meta({ description: 'How long to wait before answering, s' }),
  })
  .meta({ title: 'BenchmarkAction', description: 'How long the server takes to answer' });

export type BenchmarkAction = z.infer<typeof benchmarkActionSchema>;

const hostUrl = z.string().meta({ description: 'The server that answered' });
const pid = z.int().min(1).meta({ description: 'The process that answered' });
const sessionHash = z.string().length(16).meta({ description: 'Tells sessions apart' });

/** Who answered, and after how long. */
export const benchmarkObservationSchema = z
  .object({
    host_url: hostUrl,
    pid,
    session_hash: sessionHash,
    waited_seconds: z
      .number()
      .min(0)
      .meta({ description: 'How long the step really waited, s; 0 after a reset' }),
    timestamp: z.number().meta({ description: 'When the server answered, seconds since 1970' }),
  })
  .meta({ title: 'BenchmarkObservation', description: 'Who answered, and after how long' });

export type BenchmarkObservation = z.infer<typeof benchmarkObservationSchema>;

/** What the session has done. */
export const benchmarkStateSchema = z
  .object({
    host_url: hostUrl,
    pid,
    session_hash: sessionHash,
    resets: z.int().min(0).meta({ description: 'Episodes that the session has started' }),
    total_waited_seconds: z.number().min(0).meta({ description: 'All waits of this episode, s' }),
  })
  .meta({ title: 'BenchmarkState' });

export type BenchmarkState = z.infer<typeof benchmarkStateSchema>;

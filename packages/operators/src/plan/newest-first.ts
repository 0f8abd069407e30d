import type { JobEngine } from '@servegym/jobs';

/** Lets runs that were asked for last go first: a profile is planned to its end before all others are begun. */
export function newestFirst(engine: JobEngine): JobEngine {
  const waiting: (() => void)[] = [];
  let running = 0;
  const leave = () => {
    const next = waiting.pop();
    if (next) next();
    else running--;
  };
  return {
    width: engine.width,
    share: (bytes) => engine.share(bytes),
    close: () => engine.close(),
    async run(jobs, options) {
      if (running < engine.width) running++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await engine.run(jobs, options);
      } finally {
        // What its caller asks for next is then newer than what waits.
        setImmediate(leave);
      }
    },
  };
}

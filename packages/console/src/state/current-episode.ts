/** Whether the episode that was asked about is still the one on the page. */
export type IsCurrent = () => boolean;

/** Counts the episodes begun, so that answers to an older one are told apart. */
export interface CurrentEpisode {
  /** Another episode takes the page. */
  next(): IsCurrent;
  /** Asks about the one that has it now. */
  watch(): IsCurrent;
}

export function createCurrentEpisode(): CurrentEpisode {
  let current = 0;
  const watch = (): IsCurrent => {
    const watched = current;
    return () => current === watched;
  };
  return {
    next() {
      current++;
      return watch();
    },
    watch,
  };
}

import type { ReadonlySignal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Client } from '../api/client.ts';
import { createEpisodes } from './episodes.ts';
import { createPageSignals, type PageSignals } from './page-signals.ts';
import { createPlayer } from './player.ts';
import { createProblems, createReconnection, type Sleep, sleepUntilWoken } from './reconnection.ts';
import type { Run } from './run.ts';
import { createRunsBeside } from './runs-beside.ts';

/** Fewest windows that the charts show. */
const FEWEST_ZOOMED = 5;

/** Signals that components set. */
type SetByComponents = 'speed' | 'pointedAt' | 'zoomed';

/** The signals of the page, to be read. */
type ShownSignals = Pick<PageSignals, SetByComponents> & {
  readonly [Name in Exclude<keyof PageSignals, SetByComponents>]: ReadonlySignal<PageSignals[Name]['value']>;
};

/** Everything the page shows and all that it can be told to do. */
export type ConsoleState = ReturnType<typeof createConsoleState>;

export function createConsoleState(client: Client, sleep: Sleep = sleepUntilWoken) {
  const page = createPageSignals(client);
  const { task, seed, options, opened, areOver, run, latest, position, playing } = page;
  const problems = createProblems(client, page);
  const player = createPlayer(page, problems, (error, isCurrent) => interrupted(error, isCurrent));
  const episodes = createEpisodes(client, page, problems, player);
  const interrupted = createReconnection(client, page, sleep, problems, player, episodes);
  const { connect, openFile, resetOptions, begin } = episodes;
  const { play, tick, step, seek } = player;
  return {
    ...(page as ShownSignals),
    ...createRunsBeside(client, page, problems, player, episodes),
    client,
    connect,
    openFile,
    resetOptions,
    tick,
    step,
    seek,
    showProblem: problems.showProblem,
    enterToken: problems.enterToken,
    chooseTask(id: string): void {
      task.value = id;
      void begin(playing.value);
    },
    /** @param thenPlay whether to play at once; default: if the page plays now */
    chooseSeed(value: number, thenPlay = playing.value): void {
      seed.value = value;
      void begin(thenPlay);
    },
    /** `undefined` leaves an option to the server. */
    chooseOption(name: string, value: unknown): void {
      const { [name]: _, ...others } = options.value;
      options.value = value === undefined ? others : { ...others, [name]: value };
      void begin(playing.value);
    },
    /** Shows `factor` times the windows in the charts, around the shown one. */
    zoom(factor: number): void {
      const [from, to] = page.zoomed.value ?? [0, page.charted.value];
      const least = Math.min(FEWEST_ZOOMED, page.charted.value);
      const width = Math.max(least, Math.min(page.charted.value, Math.round((to - from) * factor)));
      const middle = page.shownIndex.value;
      const start = Math.max(0, Math.min(page.charted.value - width, Math.round(middle - width / 2)));
      page.zoomed.value = width === page.charted.value ? null : [start, start + width];
    },
    focus(one: Run): void {
      run.value = one;
    },
    turn(knob: string, value: unknown): void {
      run.value.turn({ [knob]: value });
    },
    /** Starts the same episode again; winds an opened one back to its start. */
    async restart(): Promise<void> {
      const thenPlay = playing.value;
      if (!opened.value) return begin(thenPlay);
      seek(0);
      if (thenPlay) play();
    },
    togglePlay(): void {
      if (playing.value) playing.value = false;
      else if (position.value !== null) play();
      else if (areOver.value && opened.value) {
        seek(0);
        play();
      } else if (areOver.value) void begin(true);
      else if (latest.value) play();
    },
  };
}

export const ConsoleContext = createContext<ConsoleState | undefined>(undefined);

export function useConsole(): ConsoleState {
  const state = useContext(ConsoleContext);
  if (!state) throw new Error('Expected a ConsoleContext around this component');
  return state;
}

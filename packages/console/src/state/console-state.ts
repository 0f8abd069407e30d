import type { ReadonlySignal } from '@preact/signals';
import type { Client } from '../api/client.ts';
import type { EpisodeFile, Fields } from '../api/wire.ts';
import type { Choices } from './choices.ts';
import { createEpisodes } from './episodes.ts';
import { createPageSignals, type PageSignals } from './page-signals.ts';
import { createPlayer } from './player.ts';
import { createProblems } from './problems.ts';
import { createReconnection, type Sleep, sleepUntilWoken } from './reconnection.ts';
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
export interface ConsoleState extends ShownSignals {
  readonly client: Client;
  connect(choices: Choices, autoplay: boolean): Promise<void>;
  /** Sends the token from now on and goes on where the server asked for it. */
  enterToken(token: string): void;
  chooseTask(task: string): void;
  /** @param thenPlay whether to play at once; default: if the page plays now */
  chooseSeed(seed: number, thenPlay?: boolean): void;
  /** `undefined` leaves an option to the server. */
  chooseOption(name: string, value: unknown): void;
  chooseDriver(driver: string, run?: Run): void;
  /** Puts another policy beside the runs, on the same episode, and lets it catch up. */
  addRun(policy: string): Promise<void>;
  removeRun(run: Run): void;
  focus(run: Run): void;
  turn(knob: string, value: unknown): void;
  /** Starts the same episode again; winds an opened one back to its start. */
  restart(): Promise<void>;
  togglePlay(): void;
  /** Plays or shows one window more, and pauses. */
  step(): Promise<void>;
  /** Shows a window; the newest and those beyond it: live again. Pauses. */
  seek(window: number): void;
  /** Drops what the run in focus has played after the shown window, and goes on from there. */
  branch(): Promise<void>;
  /**
   * Shows an episode from its file, in place of the runs, at its start; with others beside it, at their ends. Throws
   * nothing: what is wrong becomes the problem.
   * @param beside at most `RUN_PLACES` - 1
   */
  openFile(file: EpisodeFile, thenPlay: boolean, beside?: readonly EpisodeFile[]): Promise<void>;
  /** Shows `factor` times the windows in the charts, around the shown one. */
  zoom(factor: number): void;
  /** The options that the next reset carries. */
  resetOptions(): Fields;
  /** Shows a problem that the page itself has, until the person has read it. */
  showProblem(message: string): void;
  /** To be called once a displayed frame while playing. */
  tick(nowMs: number): void;
}

export function createConsoleState(client: Client, sleep: Sleep = sleepUntilWoken): ConsoleState {
  const page = createPageSignals(client);
  const { task, seed, options, opened, areOver, run, latest, position, playing } = page;
  const problems = createProblems(client, page);
  const player = createPlayer(page, problems, (error, isCurrent) => interrupted(error, isCurrent));
  const episodes = createEpisodes(client, page, problems, player);
  const interrupted = createReconnection(client, page, sleep, problems, player, episodes);
  const { connect, openFile, resetOptions, begin } = episodes;
  const { play, tick, step, seek } = player;
  return {
    ...page,
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
    chooseTask(id) {
      task.value = id;
      void begin(playing.value);
    },
    chooseSeed(value, thenPlay = playing.value) {
      seed.value = value;
      void begin(thenPlay);
    },
    chooseOption(name, value) {
      const { [name]: _, ...others } = options.value;
      options.value = value === undefined ? others : { ...others, [name]: value };
      void begin(playing.value);
    },
    zoom(factor) {
      const [from, to] = page.zoomed.value ?? [0, page.charted.value];
      const least = Math.min(FEWEST_ZOOMED, page.charted.value);
      const width = Math.max(least, Math.min(page.charted.value, Math.round((to - from) * factor)));
      const middle = page.shownIndex.value;
      const start = Math.max(0, Math.min(page.charted.value - width, Math.round(middle - width / 2)));
      page.zoomed.value = width === page.charted.value ? null : [start, start + width];
    },
    focus(one) {
      run.value = one;
    },
    turn(knob, value) {
      run.value.turn({ [knob]: value });
    },
    async restart() {
      const thenPlay = playing.value;
      if (!opened.value) return begin(thenPlay);
      seek(0);
      if (thenPlay) play();
    },
    togglePlay() {
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

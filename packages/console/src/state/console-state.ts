import type { ReadonlySignal, Signal } from '@preact/signals';
import type { Knob } from '../api/action-schema.ts';
import type { Client } from '../api/client.ts';
import type { ServerAbilities } from '../api/server-abilities.ts';
import type {
  EnvironmentInfo,
  EpisodeFile,
  Fields,
  Grade,
  PolicyInfo,
  SchemaBody,
  Task,
} from '../api/wire.ts';
import type { Choices } from './choices.ts';
import { createCurrentEpisode } from './current-episode.ts';
import { createEpisodes } from './episodes.ts';
import type { Frame } from './frame.ts';
import { createGrading } from './grading.ts';
import { createPageSignals, type OpenedFile, type Problem } from './page-signals.ts';
import { createPlayer } from './player.ts';
import { createReconnection } from './reconnection.ts';
import { type Sleep, sleepUntilWoken } from './retry.ts';
import type { Run } from './run.ts';
import { createRunsBeside } from './runs-beside.ts';
import { createTroubles } from './troubles.ts';

/** Everything the page shows and all that it can be told to do. */
export interface ConsoleState {
  readonly client: Client;
  readonly environment: ReadonlySignal<EnvironmentInfo | undefined>;
  readonly schemas: ReadonlySignal<SchemaBody | undefined>;
  readonly tasks: ReadonlySignal<readonly Task[]>;
  readonly policies: ReadonlySignal<readonly PolicyInfo[]>;
  readonly abilities: ReadonlySignal<ServerAbilities>;
  readonly knobs: ReadonlySignal<readonly Knob[]>;
  /** Definitions of the observation's fields, from its schema. */
  readonly definitions: ReadonlySignal<Readonly<Record<string, string>>>;

  readonly task: ReadonlySignal<string | undefined>;
  readonly chosenTask: ReadonlySignal<Task | undefined>;
  readonly seed: ReadonlySignal<number>;
  /** Options of the reset beside task and seed; those that are absent are left to the server. */
  readonly options: ReadonlySignal<Fields>;
  readonly speed: Signal<number>;
  readonly opened: ReadonlySignal<OpenedFile | undefined>;

  /** The episodes side by side: one to `RUN_PLACES`, all on the same task, seed and options. */
  readonly runs: ReadonlySignal<readonly Run[]>;
  /** The run whose server, knobs and decisions are shown. */
  readonly run: ReadonlySignal<Run>;
  /** Whether no window follows on any run. */
  readonly areOver: ReadonlySignal<boolean>;
  /** Changes when the frames of any run start anew, or runs come and go. */
  readonly epoch: ReadonlySignal<string>;
  /** The newest window of any run. */
  readonly newest: ReadonlySignal<number>;
  /** The window that the page has been wound back to; `null`: the newest. */
  readonly position: ReadonlySignal<number | null>;
  /** The window under the pointer in a chart. */
  readonly pointedAt: Signal<number | null>;
  /** The window that the page shows. */
  readonly shownIndex: ReadonlySignal<number>;

  /** Of the run in focus: who drives it, its windows, the newest one, the shown one, its grade. */
  readonly driver: ReadonlySignal<string>;
  readonly frames: ReadonlySignal<readonly Frame[]>;
  readonly latest: ReadonlySignal<Frame | undefined>;
  readonly shown: ReadonlySignal<Frame | undefined>;
  readonly grade: ReadonlySignal<Grade | undefined>;
  /** Where the knobs stand: the hand's values, or what was chosen in the shown window. */
  readonly knobValues: ReadonlySignal<Fields>;

  /** The run that was added and is catching up with the others. */
  readonly joining: ReadonlySignal<Run | undefined>;
  readonly playing: ReadonlySignal<boolean>;
  readonly problem: ReadonlySignal<Problem | undefined>;
  /** Whether the server wants a token. */
  readonly needsToken: ReadonlySignal<boolean>;

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
  /** Shows an episode from its file, in place of the runs. Throws nothing: what is wrong becomes the problem. */
  openFile(file: EpisodeFile, thenPlay: boolean): Promise<void>;
  /** The options that the next reset carries. */
  resetOptions(): Fields;
  /** Shows a problem that the page itself has, until the person has read it. */
  tell(message: string): void;
  /** To be called once a displayed frame while playing. */
  tick(nowMs: number): void;
}

export function createConsoleState(client: Client, sleep: Sleep = sleepUntilWoken): ConsoleState {
  const page = createPageSignals(client);
  const { task, seed, options, opened, areOver, run, latest, position, playing } = page;
  const current = createCurrentEpisode();
  const troubles = createTroubles(client, page);
  const score = createGrading(page, troubles);
  const player = createPlayer(page, current.watch, score, (error, isCurrent) =>
    interrupted(error, isCurrent),
  );
  const episodes = createEpisodes(client, page, current, troubles, player, score);
  const interrupted = createReconnection(client, page, sleep, troubles, player, episodes, score);
  const { connect, openFile, resetOptions, begin } = episodes;
  const { play, tick, step, seek } = player;
  return {
    ...page,
    ...createRunsBeside(client, page, current.watch, troubles, player, episodes, score),
    client,
    connect,
    openFile,
    resetOptions,
    tick,
    step,
    seek,
    tell: troubles.tell,
    enterToken: troubles.enterToken,
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

import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { descriptionsOf, type Knob, knobsOf } from '../api/action-schema.ts';
import { ApiError } from '../api/api-error.ts';
import type { Client } from '../api/client.ts';
import type { EnvironmentInfo, Fields, Grade, PlayedStep, PolicyInfo, Task } from '../api/wire.ts';
import type { Choices } from './choices.ts';
import { type Frame, firstFrame, nextFrame } from './frame.ts';
import { startValues } from './knob-values.ts';
import { createPacer } from './pacer.ts';

/** The driver that sends the knobs of the page. Every other driver is the name of a policy on the server. */
export const BY_HAND = 'hand';
/** Windows a second. */
export const SPEEDS = [2, 8, 24, 60] as const;

/** Something that went wrong, and the way on. */
export interface Problem {
  readonly message: string;
  readonly remedy: string;
  readonly mend: () => void;
}

/** Everything the page shows and all that it can be told to do. */
export interface ConsoleState {
  readonly environment: ReadonlySignal<EnvironmentInfo | undefined>;
  readonly tasks: ReadonlySignal<readonly Task[]>;
  readonly policies: ReadonlySignal<readonly PolicyInfo[]>;
  readonly knobs: ReadonlySignal<readonly Knob[]>;
  /** Definitions of the observation's fields, from its schema. */
  readonly definitions: ReadonlySignal<Readonly<Record<string, string>>>;

  readonly task: ReadonlySignal<string | undefined>;
  readonly seed: ReadonlySignal<number>;
  readonly driver: ReadonlySignal<string>;
  readonly speed: Signal<number>;

  /** The windows of this episode. The array grows in place: read `played` to be told. */
  readonly frames: ReadonlySignal<readonly Frame[]>;
  /** How many frames there are; changes with every window. */
  readonly played: ReadonlySignal<number>;
  /** Counts the episodes begun on this page. */
  readonly episode: ReadonlySignal<number>;
  readonly latest: ReadonlySignal<Frame | undefined>;
  /** The window under the pointer, or the latest one. */
  readonly shown: ReadonlySignal<Frame | undefined>;
  readonly pointedAt: Signal<number | null>;
  readonly playing: ReadonlySignal<boolean>;
  readonly grade: ReadonlySignal<Grade | undefined>;
  readonly problem: ReadonlySignal<Problem | undefined>;
  /** Where the knobs stand: the hand's values, or what the policy chose last. */
  readonly knobValues: ReadonlySignal<Fields>;

  connect(choices: Choices, autoplay: boolean): Promise<void>;
  chooseTask(task: string): void;
  /** @param thenPlay whether to play at once; default: if the page plays now */
  chooseSeed(seed: number, thenPlay?: boolean): void;
  chooseDriver(driver: string): void;
  turn(knob: string, value: unknown): void;
  /** Starts the same episode again. */
  restart(): Promise<void>;
  togglePlay(): void;
  /** Plays one window and pauses. */
  step(): Promise<void>;
  /** To be called once a displayed frame while playing. */
  tick(nowMs: number): void;
}

export function createConsoleState(client: Client): ConsoleState {
  const environment = signal<EnvironmentInfo>();
  const tasks = signal<readonly Task[]>([]);
  const policies = signal<readonly PolicyInfo[]>([]);
  const knobs = signal<readonly Knob[]>([]);
  const definitions = signal<Readonly<Record<string, string>>>({});
  const task = signal<string>();
  const seed = signal(1);
  const driver = signal(BY_HAND);
  const speed = signal<number>(SPEEDS[1]);
  const frames = signal<Frame[]>([]);
  const played = signal(0);
  const episode = signal(0);
  const pointedAt = signal<number | null>(null);
  const playing = signal(false);
  const grade = signal<Grade>();
  const problem = signal<Problem>();
  const handValues = signal<Fields>({});

  let sessionId: string | undefined;
  let asking: Promise<void> | undefined;
  const pacer = createPacer();

  const latest = computed(() => frames.value[played.value - 1]);
  const shown = computed(() => frames.value[Math.min(pointedAt.value ?? Infinity, played.value - 1)]);
  const knobValues = computed(() =>
    driver.value === BY_HAND ? handValues.value : (latest.value?.action ?? handValues.value),
  );

  async function connect(choices: Choices, autoplay: boolean): Promise<void> {
    problem.value = undefined;
    try {
      const [info, schemas, taskList, policyList] = await Promise.all([
        client.metadata(),
        client.schema(),
        client.tasks(),
        client.policies(),
      ]);
      batch(() => {
        environment.value = info;
        tasks.value = taskList;
        policies.value = policyList;
        knobs.value = knobsOf(schemas.action);
        definitions.value = descriptionsOf(schemas.observation);
        task.value = pickTask(taskList, choices.task);
        seed.value = choices.seed ?? seed.value;
        driver.value = pickDriver(policyList, choices.policy);
      });
    } catch (error) {
      report(error, 'Connect again', () => void connect(choices, autoplay));
      return;
    }
    await begin(autoplay && driver.value !== BY_HAND);
  }

  async function begin(thenPlay: boolean): Promise<void> {
    const number = episode.value + 1;
    batch(() => {
      episode.value = number;
      playing.value = false;
      problem.value = undefined;
      grade.value = undefined;
      pointedAt.value = null;
    });
    const chosen = tasks.value.find(({ id }) => String(id) === task.value);
    try {
      // A step still under way would otherwise play into the new episode of the same session.
      await asking;
      if (episode.value !== number) return;
      const started = await client.reset(chosen?.id, seed.value, sessionId);
      if (episode.value !== number) return;
      sessionId = started.sessionId;
      batch(() => {
        frames.value = [firstFrame(started)];
        played.value = 1;
        handValues.value = startValues(knobs.value, chosen?.default_action);
        if (thenPlay) play();
      });
    } catch (error) {
      if (episode.value === number) report(error, 'Try again', () => void begin(thenPlay));
    }
  }

  /** Asks for `windows` more windows, from the policy or with the hand's values; one request at a time. */
  async function advance(windows: number): Promise<void> {
    if (asking || sessionId === undefined || latest.value === undefined || latest.value.done) return;
    asking = ask(sessionId, windows).finally(() => {
      asking = undefined;
    });
    await asking;
  }

  async function ask(sessionId: string, windows: number): Promise<void> {
    const number = episode.value;
    try {
      const steps =
        driver.value === BY_HAND
          ? [await client.step(sessionId, handValues.value)]
          : await client.policySteps(driver.value, sessionId, windows);
      if (episode.value === number) append(steps);
    } catch (error) {
      if (episode.value !== number) return;
      const wasPlaying = playing.value;
      playing.value = false;
      if (error instanceof ApiError && error.isTemporary)
        report(error, 'Try again', () => resume(wasPlaying));
      else report(error, 'Start the episode again', () => void begin(wasPlaying));
    }
  }

  function append(steps: readonly PlayedStep[]): void {
    const all = frames.value;
    for (const step of steps) all.push(nextFrame(all[all.length - 1], step));
    pacer.played(steps.length);
    batch(() => {
      played.value = all.length;
      if (!latest.value?.done) return;
      playing.value = false;
      void score(episode.value);
    });
  }

  async function score(number: number): Promise<void> {
    if (sessionId === undefined) return;
    try {
      const answer = await client.grade(sessionId);
      if (episode.value === number) grade.value = answer;
    } catch (error) {
      if (episode.value === number) report(error, 'Ask for the score again', () => void score(number));
    }
  }

  function resume(thenPlay: boolean): void {
    problem.value = undefined;
    if (thenPlay) play();
    else void advance(1);
  }

  function play(): void {
    pacer.restart();
    playing.value = true;
  }

  function report(error: unknown, remedy: string, action: () => void): void {
    if (!(error instanceof ApiError)) throw error;
    problem.value = {
      message: error.message,
      remedy,
      mend() {
        problem.value = undefined;
        action();
      },
    };
  }

  return {
    environment,
    tasks,
    policies,
    knobs,
    definitions,
    task,
    seed,
    driver,
    speed,
    frames,
    played,
    episode,
    latest,
    shown,
    pointedAt,
    playing,
    grade,
    problem,
    knobValues,
    connect,
    chooseTask(id) {
      task.value = id;
      void begin(playing.value);
    },
    chooseSeed(value, thenPlay = playing.value) {
      seed.value = value;
      void begin(thenPlay);
    },
    chooseDriver(name) {
      batch(() => {
        handValues.value = knobValues.value;
        driver.value = name;
        if (name === BY_HAND) playing.value = false;
      });
    },
    turn(knob, value) {
      handValues.value = { ...handValues.value, [knob]: value };
    },
    restart: () => begin(playing.value),
    togglePlay() {
      if (playing.value) playing.value = false;
      else if (latest.value?.done) void begin(true);
      else if (latest.value) play();
    },
    async step() {
      playing.value = false;
      await advance(1);
    },
    tick(nowMs) {
      if (!playing.value || asking) return;
      const windows = pacer.due(nowMs, speed.value);
      if (windows > 0) void advance(windows);
    },
  };
}

/** The task asked for, or the hardest: the last one. */
function pickTask(tasks: readonly Task[], wanted: string | undefined): string | undefined {
  const ids = tasks.map(({ id }) => String(id));
  return wanted !== undefined && ids.includes(wanted) ? wanted : ids.at(-1);
}

function pickDriver(policies: readonly PolicyInfo[], wanted: string | undefined): string {
  const names = policies.map(({ name }) => name);
  if (wanted === BY_HAND || (wanted !== undefined && names.includes(wanted))) return wanted;
  return names.includes('heuristic') ? 'heuristic' : (names[0] ?? BY_HAND);
}

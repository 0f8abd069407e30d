import { batch, computed, type ReadonlySignal, signal } from '@preact/signals';
import type { Client } from '../api/client.ts';
import type { EpisodeFile, Fields, Grade, OpenedEpisode, PlayedStep } from '../api/wire.ts';
import { type Frame, firstFrame, nextFrame } from './frame.ts';

/** The driver that sends the knobs of the page. Every other driver is the name of a policy on the server. */
export const BY_HAND = 'hand';
/** The driver of an episode that was opened: its actions are recorded, and nothing follows the last one. */
export const RECORDED = 'recorded';
/** Windows that the server plays at one request. */
const MOST_WINDOWS = 200;

/** The format of episode files that the page writes. */
export const EPISODE_FORMAT = 'openenv-episode/1';
/** The colours and dashes that tell the runs on one page apart, by the place that a run takes. */
export const RUN_PLACES = 4;

/** Runs made so far. */
let made = 0;

/** One episode on the page: who plays it and what has come of it. */
export interface Run {
  /** Unique, unlike `place`: another run may take the place of one that has left the page. */
  readonly id: number;
  /** 0 to `RUN_PLACES` - 1: its colour. Unique among the runs on the page. */
  readonly place: number;
  readonly driver: ReadonlySignal<string>;
  /** The windows of this episode. The array grows in place: read `played` to be told. */
  readonly frames: ReadonlySignal<readonly Frame[]>;
  /** How many frames there are; changes with every window. */
  readonly played: ReadonlySignal<number>;
  /** Changes when the frames start anew. */
  readonly epoch: ReadonlySignal<number>;
  readonly latest: ReadonlySignal<Frame | undefined>;
  /** Whether no window follows: the episode is over, or its recording ends. */
  readonly isOver: ReadonlySignal<boolean>;
  /** Whether the server is at work on it. */
  readonly isBusy: ReadonlySignal<boolean>;
  /** Name of the player of its recorded windows, where it was opened and the file has one. */
  readonly author: string | undefined;
  readonly grade: ReadonlySignal<Grade | undefined>;
  readonly handValues: ReadonlySignal<Fields>;
  /** The session that the server plays it in, once it has begun. */
  readonly sessionId: string | undefined;
  /** Options of the reset that it began with. */
  readonly reset: Fields;

  /** Hands the knobs to a policy, or takes them by hand as the last one left them. */
  drive(driver: string): void;
  turn(values: Fields): void;
  /** Starts an episode. @throws ApiError */
  begin(reset: Fields, startValues: Fields): Promise<void>;
  /** Shows an episode that was opened from a file. */
  adopt(file: EpisodeFile, opened: OpenedEpisode, startValues: Fields): void;
  /** Plays up to so many windows; by hand one. @throws ApiError */
  advance(windows: number): Promise<void>;
  /** Goes back to a window and on from there, in a session of its own. @throws ApiError */
  branchAt(window: number): Promise<void>;
  /** Catches up with a server that was away: it may have played a window more, or forgotten the session. @throws ApiError */
  recover(): Promise<void>;
  /** Asks for the grade of a finished episode. @throws ApiError */
  score(): Promise<void>;
  /** What has been played. */
  file(): EpisodeFile;
}

export function createRun(client: Client, place: number, firstDriver: string): Run {
  const driver = signal(firstDriver);
  const frames = signal<Frame[]>([]);
  const played = signal(0);
  const epoch = signal(0);
  const grade = signal<Grade>();
  const handValues = signal<Fields>({});
  const latest = computed(() => frames.value[played.value - 1]);
  const isOver = computed(() => latest.value?.done === true || driver.value === RECORDED);
  const requests = signal(0);
  const isBusy = computed(() => requests.value > 0);
  let author: string | undefined;
  let sessionId: string | undefined;
  let reset: Fields = {};
  let isAsking = false;

  function startWith(all: Frame[]): void {
    batch(() => {
      frames.value = all;
      played.value = all.length;
      epoch.value++;
      grade.value = undefined;
    });
  }

  function append(steps: readonly PlayedStep[], by: string): void {
    const all = frames.value;
    for (const step of steps) all.push(nextFrame(all[all.length - 1], step, by));
    played.value = all.length;
  }

  /** Counts a request as work of the server until it is answered. */
  async function whileBusy<T>(request: Promise<T>): Promise<T> {
    requests.value++;
    try {
      return await request;
    } finally {
      requests.value--;
    }
  }

  const file = (): EpisodeFile => ({
    format: EPISODE_FORMAT,
    reset,
    actions: frames.peek().flatMap(({ action }) => (action ? [action] : [])),
  });

  const run: Run = {
    id: ++made,
    place,
    driver,
    frames,
    played,
    epoch,
    latest,
    isOver,
    isBusy,
    grade,
    handValues,
    get author() {
      return author;
    },
    get sessionId() {
      return sessionId;
    },
    get reset() {
      return reset;
    },
    drive(name) {
      batch(() => {
        if (name === BY_HAND && driver.value !== BY_HAND)
          handValues.value = latest.value?.action ?? handValues.value;
        driver.value = name;
      });
    },
    turn(values) {
      handValues.value = { ...handValues.value, ...values };
    },
    async begin(options, startValues) {
      const started = await whileBusy(client.reset(options, sessionId));
      sessionId = started.sessionId;
      reset = options;
      author = undefined;
      batch(() => {
        startWith([firstFrame(started)]);
        handValues.value = startValues;
      });
    },
    adopt(recorded, opened, startValues) {
      sessionId = opened.sessionId;
      reset = recorded.reset;
      author = recorded.author || undefined;
      batch(() => {
        driver.value = RECORDED;
        if (opened.start) startWith([firstFrame(opened.start)]);
        append(opened.steps, RECORDED);
        handValues.value = latest.value?.action ?? startValues;
      });
    },
    async advance(windows) {
      if (isAsking || sessionId === undefined || latest.value === undefined || isOver.value) return;
      isAsking = true;
      const now = epoch.value;
      const by = driver.value;
      try {
        const steps = await whileBusy(
          by === BY_HAND
            ? client.step(sessionId, handValues.value).then((step) => [step])
            : client.policySteps(by, sessionId, Math.min(windows, MOST_WINDOWS)),
        );
        if (epoch.value === now) append(steps, by);
      } finally {
        isAsking = false;
      }
    },
    async branchAt(window) {
      const kept = frames.value.slice(0, window + 1);
      const { actions, ...rest } = file();
      const opened = await whileBusy(
        client.openEpisode({ ...rest, actions: actions.slice(0, window) }, window + 1),
      );
      sessionId = opened.sessionId;
      batch(() => {
        if (driver.value === RECORDED) driver.value = BY_HAND;
        startWith(kept);
        handValues.value = latest.value?.action ?? handValues.value;
      });
    },
    async recover() {
      if (sessionId === undefined) return;
      const windows = played.value - 1;
      const there = await client.stepCount(sessionId);
      if (there === windows) return;
      const own = file();
      const actions =
        there !== undefined && there > windows ? (await client.episode(sessionId)).actions : own.actions;
      const opened = await client.openEpisode({ ...own, actions }, windows + 1);
      sessionId = opened.sessionId;
      append(opened.steps, driver.value);
    },
    async score() {
      if (sessionId === undefined) return;
      const now = epoch.value;
      const answer = await client.grade(sessionId);
      if (epoch.value === now) grade.value = answer;
    },
    file,
  };
  return run;
}

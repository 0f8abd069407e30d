import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import type { Client, OpenedEpisode } from '../api/client.ts';
import type { EpisodeFile, Fields, Grade, PlayedStep, PolicyInfo } from '../api/wire.ts';
import { type Frame, firstFrame, nextFrame } from './frame.ts';

/** The driver that sends the knobs of the page. Every other driver is the name of a policy on the server. */
export const BY_HAND = 'hand';
/** The driver of an episode that was opened: its actions are recorded, and nothing follows the last one. */
export const RECORDED = 'recorded';
/** Windows that the server plays at one request. */
const MOST_WINDOWS = 200;

/** The format of episode files that the page writes. */
const EPISODE_FORMAT = 'openenv-episode/1';
/** The colours and dashes that tell the runs on one page apart, by the place that a run takes. */
export const RUN_PLACES = 4;

/** Runs made so far. */
let made = 0;

/** One episode on the page: who plays it and what has come of it. Only its own methods set its signals. */
export class Run {
  /** Unique, unlike `place`: another run may take the place of one that has left the page. */
  readonly id = ++made;
  /** 0 to `RUN_PLACES` - 1: its colour. Unique among the runs on the page. */
  readonly place: number;
  readonly driver: Signal<string>;
  /** The windows of this episode. The array grows in place: read `played` to be told. */
  readonly frames = signal<Frame[]>([]);
  /** Number of frames; changes with every window. */
  readonly played = signal(0);
  /** Changes when the frames start anew. */
  readonly epoch = signal(0);
  readonly latest = computed<Frame | undefined>(() => this.frames.value[this.played.value - 1]);
  /** No window follows: the episode is over, or its recording ends. */
  readonly isOver = computed(() => this.latest.value?.done === true || this.driver.value === RECORDED);
  readonly grade = signal<Grade | undefined>(undefined);
  readonly handValues = signal<Fields>({});
  /** Name of the player of its recorded windows, where it was opened and the file has one. */
  author: string | undefined;
  /** The session that the server plays it in, once it has begun. */
  sessionId: string | undefined;
  /** Options of the reset that it began with. */
  reset: Fields = {};
  readonly #client: Client;
  readonly #requests = signal(0);
  #isAsking = false;
  /** The server is at work on it. */
  readonly isBusy: ReadonlySignal<boolean> = computed(() => this.#requests.value > 0);

  constructor(client: Client, place: number, driver: string) {
    this.#client = client;
    this.place = place;
    this.driver = signal(driver);
  }

  /** A window, or the newest before it. Reads signals. */
  frameAt(window: number): Frame | undefined {
    return this.frames.value[Math.min(window, this.played.value - 1)];
  }

  /** Hands the knobs to a policy, or takes them by hand as the last one left them. */
  drive(driver: string): void {
    batch(() => {
      if (driver === BY_HAND && this.driver.value !== BY_HAND) this.#takeKnobs();
      this.driver.value = driver;
    });
  }

  turn(values: Fields): void {
    this.handValues.value = { ...this.handValues.value, ...values };
  }

  /** Starts an episode. @throws ApiError */
  async begin(reset: Fields, startValues: Fields): Promise<void> {
    const started = await this.#whileBusy(this.#client.reset(reset, this.sessionId));
    this.sessionId = started.sessionId;
    this.reset = reset;
    this.author = undefined;
    batch(() => {
      this.#startWith([firstFrame(started)]);
      this.handValues.value = startValues;
    });
  }

  /** Shows an episode that was opened from a file. */
  adopt({ reset, author }: EpisodeFile, opened: OpenedEpisode, startValues: Fields): void {
    this.sessionId = opened.sessionId;
    this.reset = reset;
    this.author = author || undefined;
    batch(() => {
      this.driver.value = RECORDED;
      if (opened.start) this.#startWith([firstFrame(opened.start)]);
      this.#append(opened.steps, RECORDED);
      this.#takeKnobs(startValues);
    });
  }

  /** Plays up to so many windows; by hand one. @throws ApiError */
  async advance(windows: number): Promise<void> {
    const { sessionId, epoch } = this;
    if (this.#isAsking || sessionId === undefined || !this.latest.value || this.isOver.value) return;
    this.#isAsking = true;
    const now = epoch.value;
    const by = this.driver.value;
    try {
      const steps = await this.#whileBusy(
        by === BY_HAND
          ? this.#client.step(sessionId, this.handValues.value).then((step) => [step])
          : this.#client.policySteps(by, sessionId, Math.min(windows, MOST_WINDOWS)),
      );
      if (epoch.value === now) this.#append(steps, by);
    } finally {
      this.#isAsking = false;
    }
  }

  /** Goes back to a window and on from there, in a session of its own. @throws ApiError */
  async branchAt(window: number): Promise<void> {
    const kept = this.frames.value.slice(0, window + 1);
    const { actions, ...rest } = this.file();
    const past = { ...rest, actions: actions.slice(0, window) };
    const opened = await this.#whileBusy(this.#client.openEpisode(past, window + 1));
    this.sessionId = opened.sessionId;
    batch(() => {
      if (this.driver.value === RECORDED) this.driver.value = BY_HAND;
      this.#startWith(kept);
      this.#takeKnobs();
    });
  }

  /** Catches up with a server that was away: it may have played a window more, or forgotten the session. @throws ApiError */
  async recover(): Promise<void> {
    if (this.sessionId === undefined) return;
    const windows = this.played.value - 1;
    const there = await this.#client.stepCount(this.sessionId);
    if (there === windows) return;
    const own = this.file();
    const isAhead = there !== undefined && there > windows;
    const { actions } = isAhead ? await this.#client.episode(this.sessionId) : own;
    const opened = await this.#client.openEpisode({ ...own, actions }, windows + 1);
    this.sessionId = opened.sessionId;
    this.#append(opened.steps, this.driver.value);
  }

  /** Asks for the grade of a finished episode. @throws ApiError */
  async score(): Promise<void> {
    const { sessionId, epoch } = this;
    if (sessionId === undefined) return;
    const now = epoch.value;
    const answer = await this.#client.grade(sessionId);
    if (epoch.value === now) this.grade.value = answer;
  }

  /** The episode so far. */
  file(): EpisodeFile {
    const actions = this.frames.peek().flatMap(({ action }) => (action ? [action] : []));
    return { format: EPISODE_FORMAT, reset: this.reset, actions };
  }

  #startWith(frames: Frame[]): void {
    this.frames.value = frames;
    this.played.value = frames.length;
    this.epoch.value++;
    this.grade.value = undefined;
  }

  #append(steps: readonly PlayedStep[], by: string): void {
    const all = this.frames.value;
    for (const step of steps) all.push(nextFrame(all[all.length - 1], step, by));
    this.played.value = all.length;
  }

  /** Takes the knobs as the latest window left them. */
  #takeKnobs(otherwise = this.handValues.value): void {
    this.handValues.value = this.latest.value?.action ?? otherwise;
  }

  /** Counts a request as work of the server until it is answered. */
  async #whileBusy<T>(request: Promise<T>): Promise<T> {
    this.#requests.value++;
    try {
      return await request;
    } finally {
      this.#requests.value--;
    }
  }
}

/** Name of the player of a run, or of another driver that has played windows of it. */
export function playerName(
  { policies }: { readonly policies: ReadonlySignal<readonly PolicyInfo[]> },
  run: Run,
  driver = run.driver.value,
): string {
  if (driver === BY_HAND) return 'By hand';
  if (driver === RECORDED) return run.author ?? 'Recorded';
  return policies.value.find(({ name }) => name === driver)?.title ?? driver;
}

import { escaped } from '@servegym/operators/report';
import chartStyle from './curve-charts.css?inline';
import { type Action, type GameChoice, type GameKnob, type GameWindow, movesText } from './game-moves.ts';
import type { GymAnswer, GymRequest, OpenedGame } from './gym-worker.ts';
import { type LineChart, lineChart, percent, timeText } from './line-chart.ts';
import style from './servegym-sim.css?inline';
import { startWorker } from './start-worker.ts';

const ENVIRONMENTS = {
  llmserve: 'llmserve: one server',
  fleet: 'fleet: replicas',
} as const;
const DEFAULTS = { environment: 'llmserve', task: 'bursty_workload', seed: '0' } as const;
/** The easiest task of each. */
const FIRST_TASK: Readonly<Record<string, string>> = { llmserve: 'static_workload', fleet: 'diurnal' };
const LOOKS = ['median', 'tail', 'third'] as const;
/** The address has an episode under this name. */
const NAME = 'play';
const MOST_SHOWN = 3;

/** A figure of a window that is drawn for each player, from its observation. */
interface Drawn extends Pick<LineChart, 'title' | 'text' | 'logarithmic' | 'range'> {
  of(seen: Readonly<Record<string, number>>): number;
}

const short = (value: number) => String(Number(value.toPrecision(3)));
const queue = (name: string): Drawn => ({
  title: 'Requests that wait',
  text: short,
  of: (seen) => seen[name]!,
});
const ttft = (name: string, ms: number): Drawn => ({
  ...{ title: 'TTFT p99', text: timeText, logarithmic: true },
  of: (seen) => ms * seen[name]!,
});
const DRAWN: Readonly<Record<string, readonly Drawn[]>> = {
  llmserve: [
    queue('queue_depth'),
    ttft('p99_ttft_ms', 1),
    { title: 'KV cache in use', text: percent, range: [0, 1], of: (seen) => seen.kv_cache_occupancy! },
  ],
  fleet: [
    queue('num_requests_waiting'),
    ttft('time_to_first_token_seconds_p99', 1000),
    { title: 'Replicas that are ready', text: short, of: (seen) => seen.replicas_ready! },
  ],
};

const PAGE = `<style>${style}${chartStyle}</style>
<section class="box" aria-label="A server to run">
<form class="choices">
<div><label for="environment">Environment</label><select id="environment">${Object.entries(ENVIRONMENTS)
  .map(([id, name]) => `<option value="${id}">${name}</option>`)
  .join('')}</select></div>
<div><label for="task">Task</label><select id="task"></select></div>
<div><label for="seed">Seed of the requests</label><input id="seed" type="number" min="0" step="1" required></div>
</form>
<p class="notes about">&nbsp;</p>
<p role="alert"></p>
<dl class="figures play">${'<div></div>'.repeat(4)}</dl>
<form class="choices knobs" aria-label="Settings of the next window">${'<div><label>&nbsp;</label><select disabled></select></div>'.repeat(6)}</form>
<p class="buttons"><button type="button" value="1">Play a window</button><button type="button" value="10">Play 10</button><button type="button" value="1000">To the end</button><button type="button" value="0">Start over</button><a class="link">Link to this episode</a></p>
<div class="charts" aria-busy="true">${'<div class="place"></div>'.repeat(4)}</div>
<p class="notes" role="status"></p>
</section>`;

/** A game in an element. */
export class Gym {
  readonly #host: HTMLElement;
  readonly #root: ShadowRoot;
  readonly #worker = startWorker('gym-worker');
  #asked = 0;
  #choice: GameChoice;
  #game: OpenedGame | undefined;
  #windows: GameWindow[] = [];
  #isBusy = true;

  constructor(host: HTMLElement) {
    this.#host = host;
    this.#root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
    this.#root.innerHTML = PAGE;
    const [environment, task, seed, moves] = this.#address();
    this.#choice = { environment, task, seed: Number(seed) };
    this.#worker.onmessage = ({ data }: MessageEvent<GymAnswer>) => this.#take(data);
    this.#worker.onerror = ({ message }) => this.#say(message || 'The worker of this page does not start');
    this.#part('form').addEventListener('change', ({ target }) => this.#choose(target as HTMLInputElement));
    for (const form of this.#root.querySelectorAll('form'))
      form.addEventListener('submit', (event) => event.preventDefault());
    this.#part('.buttons').addEventListener('click', ({ target }) => {
      if (target instanceof HTMLButtonElement) this.#press(Number(target.value));
    });
    this.#open(moves);
  }

  readonly leave = (): void => this.#worker.terminate();

  get #keepsAddress(): boolean {
    return document.querySelector('servegym-gym') === this.#host;
  }

  /** Environment, task, seed and moves: of the address, else of the attributes. */
  #address(): [string, string, string, string] {
    const of = (name: keyof typeof DEFAULTS) => this.#host.getAttribute(name) ?? DEFAULTS[name];
    const played = this.#keepsAddress ? new URLSearchParams(location.search).get(NAME) : null;
    const [environment, task, seed, moves = ''] = played?.split('~') ?? [];
    return [environment ?? of('environment'), task ?? of('task'), seed ?? of('seed'), moves];
  }

  #part<E extends Element = HTMLElement>(selector: string): E {
    return this.#root.querySelector<E>(selector)!;
  }

  #say(problem: string): void {
    this.#part('[role=alert]').textContent = problem;
    this.#part('.charts').setAttribute('aria-busy', 'false');
  }

  #send(request: { choice: GameChoice; moves: string } | { action: object; windows: number }): void {
    this.#isBusy = true;
    this.#part('.charts').setAttribute('aria-busy', 'true');
    this.#worker.postMessage({ id: ++this.#asked, ...request } as GymRequest);
  }

  #open(moves = ''): void {
    this.#windows = [];
    this.#game = undefined;
    this.#part('[role=alert]').textContent = '';
    this.#part('[role=status]').textContent = '';
    this.#send({ choice: this.#choice, moves });
  }

  #choose({ id, value, validity }: HTMLInputElement): void {
    if (!validity.valid) return;
    const choice = { ...this.#choice, [id]: id === 'seed' ? Number(value) : value };
    this.#choice = id === 'environment' ? { ...choice, task: FIRST_TASK[value]! } : choice;
    this.#open();
  }

  #press(windows: number): void {
    if (windows === 0) this.#open();
    else if (!this.#isBusy) this.#send({ action: this.#action(), windows });
  }

  /** The action that the controls say. */
  #action(): Action {
    const { knobs, task } = this.#game!;
    const chosen = knobs.map(({ name, values }) => [
      name,
      values[this.#part<HTMLSelectElement>(`#${name}`).selectedIndex],
    ]);
    return { ...task.default_action, ...Object.fromEntries(chosen) };
  }

  #take(answer: GymAnswer): void {
    if (answer.id !== this.#asked) return;
    if ('problem' in answer) this.#say(answer.problem);
    else if ('opened' in answer) this.#show(answer.opened);
    else if ('scores' in answer) this.#end(answer.scores);
    else {
      this.#windows.push(...answer.windows);
      Object.assign(this.#host, { windows: this.#windows });
      this.#draw();
      if (answer.isLast) this.#rest();
    }
  }

  /** The controls of a game that was begun. */
  #show(game: OpenedGame): void {
    this.#game = game;
    const { environment, task, seed } = this.#choice;
    this.#part<HTMLSelectElement>('#environment').value = environment;
    this.#part('#task').innerHTML = options(game.tasks.map(({ id, name }) => [id, name]));
    this.#part<HTMLSelectElement>('#task').value = task;
    this.#part<HTMLInputElement>('#seed').value = String(seed);
    const { windows, window_seconds, description, default_action } = game.task;
    this.#part('.about').textContent =
      `${description} ${windows} windows of ${window_seconds} s. ${game.players.slice(1).join(' and ')} play the same requests beside you.`;
    const control = ({ name, description, values }: GameKnob) =>
      `<div><label for="${name}" title="${escaped(description)}">${name.replaceAll('_', ' ')}</label><select id="${name}" title="${escaped(description)}">${options(values.map((value) => [String(value), valueText(value)]))}</select></div>`;
    this.#part('.knobs').innerHTML = game.knobs.map(control).join('');
    this.#set(default_action);
    this.#draw();
  }

  /** Shows an action in the controls. */
  #set(action: Action): void {
    for (const { name, values } of this.#game!.knobs)
      this.#part<HTMLSelectElement>(`#${name}`).selectedIndex = values.indexOf(action[name]);
  }

  /** What was played, up to the returns. */
  #draw(): void {
    const { players, task } = this.#game!;
    const windows = this.#windows;
    const xs = windows.map((_, i) => i + 1);
    const returns = players.map((_, player) => {
      let total = 0;
      return windows.map((window) => (total += window[player]!.reward));
    });
    const totals = returns.map((each) => short(each.at(-1) ?? 0));
    const last = windows.at(-1);
    this.#part('.figures').innerHTML = players
      .map((name, i) => {
        const settings = last === undefined ? '&nbsp;' : settingsText(this.#game!, last[i]!.action);
        return `<div><dt>Return: ${name}</dt><dd>${totals[i]}<small>${settings}</small></dd></div>`;
      })
      .concat(
        `<div><dt>Windows</dt><dd>${windows.length} of ${task.windows}<small>${Math.round((windows.length * task.window_seconds) / 60)} min simulated</small></dd></div>`,
      )
      .join('');
    const chart = ({ title, text, ...rest }: Omit<Drawn, 'of'>, values: readonly (readonly number[])[]) =>
      lineChart({
        ...{ ...rest, title, text, xs, xName: 'window' },
        lines: players.map((name, i) => ({ name, look: LOOKS[i]!, values: values[i]! })),
        label: `${title} over ${windows.length} windows. Last: ${players.map((name, i) => `${name} ${text(values[i]!.at(-1) ?? 0)}`).join(', ')}.`,
      });
    const seen = DRAWN[this.#choice.environment]!.map((drawn) =>
      chart(
        drawn,
        players.map((_, i) =>
          windows.map((window) => drawn.of(window[i]!.observation as Record<string, number>)),
        ),
      ),
    );
    this.#part('.charts').innerHTML = [chart({ title: 'Return', text: short }, returns), ...seen].join('');
  }

  /** The worker waits: the address has all that was played. */
  #rest(): void {
    this.#isBusy = false;
    this.#part('.charts').setAttribute('aria-busy', 'false');
    const { players, knobs, task } = this.#game!;
    const windows = this.#windows;
    if (windows.length > 0) this.#set(windows.at(-1)![0]!.action);
    const moves = movesText(
      knobs,
      windows.map((window) => window[0]!.action),
    );
    const address = new URL(location.href);
    const { environment, task: id, seed } = this.#choice;
    address.searchParams.set(NAME, [environment, id, seed, moves].join('~'));
    this.#part<HTMLAnchorElement>('.link').href = address.href;
    if (windows.length === 0) return;
    if (this.#keepsAddress) history.replaceState(history.state, '', address);
    this.#part('[role=status]').textContent =
      windows.length < task.windows
        ? `Window ${windows.length} of ${task.windows} played by ${players.join(', ')}.`
        : 'The end. The grader replays what each has played.';
  }

  #end(scores: readonly number[]): void {
    const shown = this.#game!.players.map((name, i) => `${name} ${scores[i]!.toFixed(2)}`);
    this.#part('[role=status]').textContent =
      `The end. Scores: ${shown.join(', ')}. The default scores 0.20 on these requests, a planner that knows them 0.95.`;
    this.#host.dispatchEvent(new CustomEvent('servegym-game', { detail: { scores }, bubbles: true }));
  }
}

const options = (entries: readonly (readonly [string, string])[]) =>
  entries.map(([value, text]) => `<option value="${escaped(value)}">${escaped(text)}</option>`).join('');

function valueText(value: unknown): string {
  return typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value);
}

/** Settings of a window that are not the default's, in few words. */
function settingsText({ knobs, task }: OpenedGame, action: Action): string {
  const changed = knobs.filter(({ name }) => action[name] !== task.default_action[name]);
  const shown = changed.slice(0, MOST_SHOWN).map(({ name }) => {
    const value = action[name];
    return `${name.replaceAll('_', ' ')} ${typeof value === 'number' ? short(value) : valueText(value)}`;
  });
  const more = changed.length > MOST_SHOWN ? ` and ${changed.length - MOST_SHOWN} more` : '';
  return escaped(shown.length === 0 ? 'the default settings' : shown.join(', ') + more);
}

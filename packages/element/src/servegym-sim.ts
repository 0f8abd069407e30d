import { escaped } from '@servegym/operators/report';
import { fetchJson, type ProfileEntry } from './catalog.ts';
import chartStyle from './curve-charts.css?inline';
import { curveCharts, RESTS_ON, rateText, usdText, VALUES, valueRows } from './curve-charts.ts';
import { filmPicture } from './film-picture.ts';
import { htmlTable, percent, timeText } from './line-chart.ts';
import type { CurvePoint, LoadCurve } from './load-curve.ts';
import { LOG_PART, logPlans } from './log-plans.ts';
import style from './servegym-sim.css?inline';
import { DEFAULTS, entryOf, RANGES, readSettings, type Settings } from './settings.ts';
import { startWorker } from './start-worker.ts';
import type { CurveAnswer, LogMessage } from './worker.ts';

type Name = keyof Settings;

/** Sliders with what they say. They move by the logarithm. */
const SLIDERS = {
  rate: 'Requests/s',
  input: 'Prompt, tokens',
  output: 'Answer, tokens',
} as const;
const SLIDER_STEPS = 400;

const field = (name: string, text: string, control: string, value = '') =>
  `<div><label for="${name}">${text}</label>${value}${control.replace(' ', ` id="${name}" name="${name}" `)}</div>`;
const choice = (name: Name, text: string) => field(name, text, '<select ></select>');
const slider = ([name, text]: [string, string]) =>
  field(name, text, `<input type="range" min="0" max="${SLIDER_STEPS}">`, '<b></b>');
const bound = (name: 'slo-ttft' | 'slo-tpot', text: string) =>
  field(name, text, `<input type="number" min="${RANGES[name][0]}" step="any" required>`);

const PAGE = `<style>${style}${chartStyle}</style>
<section class="box" aria-label="Simulated LLM server">
<form>
<div class="choices">${choice('model', 'Model')}${choice('gpu', 'GPU')}${choice('count', 'GPUs of an engine')}${choice('weights', 'Weights')}</div>
<div class="choices">${Object.entries(SLIDERS).map(slider).join('')}${bound('slo-ttft', 'SLO: TTFT p99 at most, ms')}${bound('slo-tpot', 'SLO: TPOT p99 at most, ms')}</div>
<details><summary>Paste a <code>vllm serve</code> line</summary>${field('command', 'Line, Kubernetes manifest or Helm values; read in this page, and sent nowhere', '<textarea spellcheck="false" placeholder="vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 128"></textarea>')}</details>
</form>
<p role="alert"></p>
<dl class="figures">${'<div><dt>&nbsp;</dt><dd>…<small>&nbsp;</small></dd></div>'.repeat(6)}</dl>
<div class="charts" aria-busy="true">${`<div class="place"></div>`.repeat(4)}</div>
<div class="film"><div class="still"></div><button type="button">Pause</button></div>
<p class="notes">&nbsp;</p>
<details class="values"><summary>Values as a table</summary><div class="scroll" tabindex="0" role="region" aria-label="Values of the charts"></div></details>
<p class="unseen" role="status"></p>
${LOG_PART}
<details class="embed"><summary>Embed this</summary><textarea readonly rows="6" spellcheck="false" aria-label="HTML of this element, and of a frame with it"></textarea></details>
</section>`;

/**
 * `<servegym-sim model gpu count weights command rate input output slo-ttft slo-tpot>`: simulates an LLM inference server in
 * a worker of the page. `curve` is what is shown; `servegym-curve` events tell of a new one. The first element of a page
 * keeps its state in the query of the address.
 */
export class ServegymSim extends HTMLElement {
  static observedAttributes = Object.keys(DEFAULTS);
  /** What is shown; `undefined` before the first. */
  curve: LoadCurve | undefined;
  #settings: Settings = DEFAULTS;
  /** Those of the attributes. */
  #given: Settings = DEFAULTS;
  #entries: readonly ProfileEntry[] = [];
  #worker: Worker | undefined;
  #asked = 0;
  /** The requests stand still. */
  #isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
  /** They move only where somebody sees them: each frame takes time. */
  #isSeen = false;
  readonly #watch = new IntersectionObserver((seen) => {
    this.#isSeen = seen.at(-1)!.isIntersecting;
    this.#move();
  });

  #leave: (() => void) | undefined;

  connectedCallback(): void {
    this.#leave = onceNear(this, () => this.#begin());
  }

  async #begin(): Promise<void> {
    const query = this.#keepsAddress ? new URLSearchParams(location.search) : new URLSearchParams();
    this.#given = readSettings((name) => this.getAttribute(name), DEFAULTS);
    this.#settings = readSettings((name) => query.get(name), this.#given);
    this.#worker = startWorker('worker');
    this.#worker.onmessage = ({ data }: MessageEvent<CurveAnswer | LogMessage>) =>
      'log' in data ? this.#tellLog(data) : this.#take(data);
    this.#worker.onerror = ({ message }) => this.#say(message || 'The worker of this page does not start');
    this.#ask();
    if (this.shadowRoot === null) {
      const root = this.attachShadow({ mode: 'open' });
      root.innerHTML = PAGE;
      root
        .querySelector('form')!
        .addEventListener('input', ({ target }) => this.#edit(target as HTMLInputElement));
      root.querySelector('form')!.addEventListener('submit', (event) => event.preventDefault());
      this.#takeLogs(root);
      root.querySelector('.film button')!.addEventListener('click', () => {
        this.#isStill = !this.#isStill;
        this.#move();
      });
    }
    try {
      this.#entries = await fetchJson<ProfileEntry[]>('./profiles/index.json');
      this.#given = this.#named(this.#given);
      this.#fill();
    } catch (error) {
      this.#say((error as Error).message);
    }
  }

  disconnectedCallback(): void {
    this.#leave?.();
    this.#watch.disconnect();
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  attributeChangedCallback(): void {
    if (this.#worker === undefined) return;
    this.#change(readSettings((name) => this.getAttribute(name), this.#settings));
  }

  get #keepsAddress(): boolean {
    return document.querySelector('servegym-sim') === this;
  }

  #part<E extends Element>(selector: string): E {
    return this.shadowRoot!.querySelector<E>(selector)!;
  }

  #say(problem: string): void {
    this.#part('[role=alert]').textContent = problem;
    this.#part('.charts').setAttribute('aria-busy', 'false');
  }

  /** HTML that shows the same in another page: by its script, and in a frame. */
  #embedded(): string {
    const file = (name: string) => new URL(name, import.meta.url).href;
    const changed = Object.entries(this.#settings).filter(
      ([name, value]) => value !== DEFAULTS[name as Name],
    );
    const attributes = changed.map(([name, value]) => ` ${name}="${escaped(String(value))}"`).join('');
    const query = new URLSearchParams(changed.map(([name, value]) => [name, String(value)]));
    return `<script type="module" src="${file('./servegym-sim.js')}"></script>
<servegym-sim${attributes}></servegym-sim>

<iframe src="${file('./embed.html')}?${query}" title="Simulated LLM server" width="100%" height="640"></iframe>`;
  }

  #ask(): void {
    this.#worker!.postMessage({ id: ++this.#asked, settings: this.#settings });
    this.shadowRoot?.querySelector('.charts')?.setAttribute('aria-busy', 'true');
  }

  #change(settings: Settings): void {
    this.#settings = settings;
    this.#fill();
    this.#ask();
  }

  /** Takes over what a person has changed. */
  #edit(control: HTMLInputElement): void {
    const name = control.name as Name;
    if (!control.validity.valid) return;
    const value =
      control.type === 'range'
        ? valueAt(name as 'rate', Number(control.value))
        : typeof DEFAULTS[name] === 'number'
          ? Number(control.value)
          : control.value;
    let settings = { ...this.#settings, [name]: value };
    if (name === 'model' || name === 'gpu') settings = this.#fitting(settings);
    this.#change(settings);
    if (!this.#keepsAddress) return;
    const address = new URL(location.href);
    for (const [key, each] of Object.entries(this.#settings)) {
      if (each === this.#given[key as Name]) address.searchParams.delete(key);
      else address.searchParams.set(key, String(each));
    }
    history.replaceState(history.state, '', address);
  }

  /** Another GPU or number of them where the model has no profile on this. */
  #fitting(settings: Settings): Settings {
    const ofModel = this.#entries.filter(({ model }) => model === settings.model);
    const onGpu = ofModel.filter(({ gpu }) => gpu === settings.gpu);
    const near = onGpu.length > 0 ? onGpu : ofModel;
    const { gpu, count } = near.find((each) => each.count === settings.count) ?? near[0];
    return { ...settings, gpu, count };
  }

  /** Settings with the whole names of model and GPU, where they have a profile. */
  #named(settings: Settings): Settings {
    try {
      const { model, gpu } = entryOf(this.#entries, settings);
      return { ...settings, model, gpu };
    } catch {
      return settings;
    }
  }

  /** Shows the settings in the controls. */
  #fill(): void {
    this.#settings = this.#named(this.#settings);
    const settings = this.#settings;
    for (const name of Object.keys(SLIDERS) as (keyof typeof SLIDERS)[]) {
      const control = this.#part<HTMLInputElement>(`[name=${name}]`);
      control.value = String(stepOf(name, settings[name]));
      control.setAttribute('aria-valuetext', String(settings[name]));
      control.previousElementSibling!.textContent = settings[name].toLocaleString('en-US');
    }
    for (const name of ['slo-ttft', 'slo-tpot', 'command'] as const) {
      const control = this.#part<HTMLInputElement>(`[name=${name}]`);
      if (control.value !== String(settings[name])) control.value = String(settings[name]);
    }
    this.#part<HTMLTextAreaElement>('.embed textarea').value = this.#embedded();
    const hasLine = settings.command.trim() !== '';
    if (hasLine) this.#part<HTMLDetailsElement>('details').open = true;
    if (this.#entries.length === 0) return;
    const entry = this.#entries.find(
      ({ model, gpu, count }) => model === settings.model && gpu === settings.gpu && count === settings.count,
    );
    if (entry === undefined) return;
    const ofModel = this.#entries.filter(({ model }) => model === entry.model);
    const onGpu = ofModel.filter(({ gpu }) => gpu === entry.gpu);
    const isKnown = entry.weights.includes(settings.weights);
    const lists: readonly (readonly [Name, readonly (string | number)[], string | number])[] = [
      ['model', this.#entries.map(({ model }) => model), entry.model],
      ['gpu', ofModel.map(({ gpu }) => gpu), entry.gpu],
      ['count', onGpu.map(({ count }) => count), entry.count],
      ['weights', entry.weights, isKnown ? settings.weights : entry.weights[0]],
    ];
    for (const [name, values, chosen] of lists) {
      const control = this.#part<HTMLSelectElement>(`[name=${name}]`);
      const sorted = [...new Set(values)].sort((a, b) =>
        typeof a === 'number' ? a - Number(b) : a.localeCompare(String(b)),
      );
      control.innerHTML = sorted.map((value) => `<option>${value}</option>`).join('');
      control.value = String(chosen);
      // The line says these.
      control.disabled = hasLine && name !== 'gpu';
    }
  }

  /** Logs may be dropped anywhere on the element. */
  #takeLogs(root: ShadowRoot): void {
    const plan = (log: File | undefined) => {
      if (log === undefined) return;
      this.#worker!.postMessage({ log, settings: this.#settings });
      this.#tellLog({ log: log.name, stage: 'reading the log', share: 0 });
    };
    const input = root.querySelector<HTMLInputElement>('input[type=file]')!;
    input.addEventListener('change', () => plan(input.files?.[0]));
    root.addEventListener('dragover', (event) => event.preventDefault());
    root.addEventListener('drop', (event) => {
      event.preventDefault();
      plan((event as DragEvent).dataTransfer?.files[0]);
    });
    root.querySelector('.work button')!.addEventListener('click', () => {
      this.#worker!.postMessage({ log: null });
      this.#tellLog({ log: '', problem: 'Cancelled.' });
    });
  }

  #tellLog(message: LogMessage): void {
    const isUnderWay = 'stage' in message;
    this.#part<HTMLElement>('.work').hidden = !isUnderWay;
    if (isUnderWay) {
      this.#part<HTMLProgressElement>('progress').value = message.share;
      this.#part('.work span').textContent = `${message.log}: ${message.stage}`;
    } else
      this.#part('.plans').innerHTML =
        'answer' in message ? logPlans(message.log, message.answer) : `<p>${escaped(message.problem)}</p>`;
    if ('answer' in message)
      this.dispatchEvent(new CustomEvent('servegym-plan', { detail: message.answer, bubbles: true }));
  }

  /** Lets the requests move, or not. */
  #move(): void {
    const film = this.shadowRoot!.querySelector<SVGSVGElement>('svg.film');
    if (this.#isStill || !this.#isSeen) film?.pauseAnimations();
    else film?.unpauseAnimations();
    this.#part('.film button').textContent = this.#isStill ? 'Play' : 'Pause';
  }

  #take(answer: CurveAnswer): void {
    if (answer.id !== this.#asked) return;
    if ('film' in answer) {
      this.#part('.still').innerHTML = filmPicture(answer.film, rateText(this.#settings.rate));
      const film = this.#part<SVGSVGElement>('svg.film');
      film.setCurrentTime(STILL_S);
      this.#move();
      this.#watch.disconnect();
      this.#watch.observe(film);
      return;
    }
    if ('problem' in answer) {
      this.#say(answer.problem);
      return;
    }
    const { curve, isWhole, notSimulated, weights, model, gpu } = answer;
    const { 'slo-ttft': ttft, 'slo-tpot': tpot, input, output } = this.#settings;
    this.#part('[role=alert]').textContent = '';
    this.curve = curve;
    const { at, breaking, error } = curve;
    const what = `${model} with ${weights} weights on ${curve.gpus} x ${gpu}`;
    const breaks =
      breaking === null
        ? 'no rate meets the SLO'
        : breaking.first === null
          ? 'the SLO holds at every rate'
          : `then ${breaking.first} breaks`;
    type Figure = readonly [name: string, value: string, more: string, isBroken?: boolean];
    const latency = (name: string, { p50, p99 }: CurvePoint['ttft'], most: number): Figure => [
      ...([`${name} at ${rateText(at.rate)} req/s`, timeText(p99), `p99; p50 ${timeText(p50)}`] as const),
      p99 > most,
    ];
    const figures: readonly Figure[] = [
      ['Breaking point', breaking === null ? 'none' : `${rateText(breaking.rate)} req/s`, breaks],
      latency('TTFT', at.ttft, ttft),
      latency('TPOT', at.tpot, tpot),
      [
        'KV cache',
        percent(at.kvMean),
        `mean; peak ${percent(at.kvPeak)} of ${curve.kvTokens.toLocaleString('en-US')} tokens`,
      ],
      [
        'Per million tokens',
        usdText(at.usdPerMillionTokens),
        `list price: ${usdText(curve.usdPerHour)} an hour`,
      ],
      [
        'Confidence',
        RESTS_ON[curve.status],
        `TPOT ± ${percent(error.share)}, TTFT ± ${percent(error.ttftShare)}`,
      ],
    ];
    this.#part('.figures').innerHTML = figures
      .map(
        ([name, value, more, isBroken]) =>
          `<div><dt>${name}</dt><dd${isBroken ? ' class="broken"' : ''}>${value}${isBroken ? ', above the SLO' : ''}<small>${more}</small></dd></div>`,
      )
      .join('');
    const charts = this.#part('.charts');
    charts.innerHTML = curveCharts(curve, { ttft, tpot }).join('');
    charts.setAttribute('aria-busy', String(!isWhole));
    const left = notSimulated.length === 0 ? '' : ` Not simulated: ${notSimulated.join('; ')}.`;
    this.#part('.notes').textContent =
      `${what}, ${input.toLocaleString('en-US')} tokens in, ${output.toLocaleString('en-US')} out, Poisson arrivals. Dotted: the SLO; upright: the breaking point. Times: ${curve.source}. Error: ${error.source}.${left}`;
    this.#part('.values .scroll').innerHTML = htmlTable(VALUES, valueRows(curve));
    if (isWhole)
      this.#part('[role=status]').textContent =
        `${what}: breaking point ${breaking === null ? '' : `${rateText(breaking.rate)} requests/s, `}${breaks}. At ${rateText(at.rate)} requests/s TTFT p99 ${timeText(at.ttft.p99)}, TPOT p99 ${timeText(at.tpot.p99)}.`;
    this.dispatchEvent(new CustomEvent('servegym-curve', { detail: { curve, isWhole }, bubbles: true }));
  }
}

/** Where the requests stand still, s. */
const STILL_S = 9;

function valueAt(name: keyof typeof SLIDERS, step: number): number {
  const [low, high] = RANGES[name];
  const value = low * (high / low) ** (step / SLIDER_STEPS);
  return name === 'rate' ? Number(value.toPrecision(2)) : Math.round(Number(value.toPrecision(3)));
}

function stepOf(name: keyof typeof SLIDERS, value: number): number {
  const [low, high] = RANGES[name];
  return Math.round((SLIDER_STEPS * Math.log(value / low)) / Math.log(high / low));
}

/** Calls once when an element is within half a window of what is seen; costs nothing before. @returns stops to wait */
function onceNear(element: Element, begin: () => void): () => void {
  const { top, bottom } = element.getBoundingClientRect();
  // The observer tells a frame later.
  if (top < 1.5 * innerHeight && bottom > -0.5 * innerHeight) {
    begin();
    return () => {};
  }
  const watch = new IntersectionObserver(
    (seen) => {
      if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      begin();
    },
    { rootMargin: '50%' },
  );
  watch.observe(element);
  return () => watch.disconnect();
}

/**
 * `<servegym-gym environment task seed>`: an episode to play, against policies on the same requests, in a worker of the page.
 * `windows` is what was played. Its parts are fetched when a page has one.
 */
class ServegymGym extends HTMLElement {
  #leave: (() => void) | undefined;

  connectedCallback(): void {
    this.#leave = onceNear(this, async () => {
      const { Gym } = await import('./gym.ts');
      if (this.isConnected) this.#leave = new Gym(this).leave;
    });
  }

  disconnectedCallback(): void {
    this.#leave?.();
    this.#leave = undefined;
  }
}

for (const [name, made] of [
  ['servegym-sim', ServegymSim],
  ['servegym-gym', ServegymGym],
] as const)
  if (!customElements.get(name)) customElements.define(name, made);

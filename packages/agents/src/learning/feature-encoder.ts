import type { Feature } from '@servegym/environments';

type Figures = Readonly<Record<string, unknown>>;

/** Encodes steps as the numbers of a list of features. Remembers the episode: `reset` it for each. */
export class FeatureEncoder {
  readonly size: number;
  readonly #features: readonly CompiledFeature[];

  constructor(features: readonly Feature[]) {
    this.size = features.length;
    this.#features = features.map((feature) => new CompiledFeature(feature));
  }

  reset(): void {
    for (const feature of this.#features) feature.reset();
  }

  /** Writes the numbers of a step, given the action in force. Call it once for each step, in order. */
  encode(observation: object, inForce: object, into: Float32Array): void {
    for (let i = 0; i < this.#features.length; i++) {
      into[i] = this.#features[i].next(observation as Figures, inForce as Figures);
    }
  }
}

/** A figure: its path, in the observation or in the action in force. */
class Figure {
  readonly #inAction: boolean;
  readonly #path: readonly string[];

  constructor(path: string) {
    this.#inAction = path.startsWith('action.');
    this.#path = path.split('.').slice(this.#inAction ? 1 : 0);
  }

  of(observation: Figures, inForce: Figures): unknown {
    let value: unknown = this.#inAction ? inForce : observation;
    for (const key of this.#path) value = (value as Figures)[key];
    return value;
  }
}

class CompiledFeature {
  readonly #feature: Feature;
  readonly #figure: Figure;
  readonly #over: Figure | undefined;
  #average = Number.NaN;
  #last = 0;
  #lastFigure: unknown;
  #kept = 0;

  constructor(feature: Feature) {
    this.#feature = feature;
    this.#figure = new Figure(feature.of);
    this.#over = feature.over === undefined ? undefined : new Figure(feature.over);
  }

  reset(): void {
    this.#average = Number.NaN;
    this.#last = 0;
    this.#lastFigure = undefined;
    this.#kept = 0;
  }

  next(observation: Figures, inForce: Figures): number {
    const {
      equals,
      plus = 0,
      over_plus = 0,
      divisor = 1,
      transform,
      memory,
      weight = 1,
      missing,
    } = this.#feature;
    const figure = this.#figure.of(observation, inForce);
    if (memory === 'kept') return this.#windowsKept(figure);
    let value = equals === undefined ? Number(figure) + plus : Number(figure === equals);
    if (this.#over !== undefined) value /= Number(this.#over.of(observation, inForce)) + over_plus;
    value = transformed(value / divisor, transform);
    if (memory === undefined) return value;
    if (memory === 'change') {
      const change = value - this.#last;
      this.#last = value;
      return change;
    }
    const measured = figure !== missing;
    if (measured) {
      this.#average = Number.isNaN(this.#average) ? value : this.#average + weight * (value - this.#average);
    }
    const average = this.#average || 0;
    if (memory === 'average') return average;
    if (memory === 'filled') return measured ? value : average;
    return measured ? value - average : 0;
  }

  #windowsKept(figure: unknown): number {
    this.#kept = this.#lastFigure === figure ? this.#kept + 1 : 0;
    this.#lastFigure = figure;
    return Math.log1p(this.#kept);
  }
}

function transformed(value: number, transform: Feature['transform']): number {
  switch (transform) {
    case 'log':
      return Math.log(value);
    case 'log1p':
      return Math.log1p(value);
    case 'log2':
      return Math.log2(value);
    default:
      return value;
  }
}

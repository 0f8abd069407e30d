import type { VectorClientMessage } from '../protocol/web-socket-message.ts';
import type { Exchange } from './exchange.ts';

/** Options of `vector_reset`. */
export type VectorOptions = Extract<VectorClientMessage, { type: 'vector_reset' }>['data'];

/** An entry for each environment. */
export interface VectorStep<Observation> {
  readonly observations: readonly Observation[];
  /** 0 where an episode has just been started. */
  readonly rewards: readonly number[];
  readonly dones: readonly boolean[];
}

/** One step of many environments, as rows of numbers. */
export interface VectorFloats {
  /** Shape n x width of the observation. */
  readonly observations: Float32Array;
  /** Shape n. */
  readonly rewards: Float32Array;
  /** Shape n, 0 or 1. */
  readonly dones: Float32Array;
}

/** Many environments of a server that step together, in one message. Made by `EnvironmentClient.vector`. */
export class VectorClient<Action, Observation> {
  /** Environments. */
  readonly size: number;
  /** Result of the first reset. */
  readonly first: VectorStep<Observation>;
  /** With `float32`: the names of the numbers of a row. */
  readonly layout:
    | { readonly action: readonly string[]; readonly observation: readonly string[] }
    | undefined;
  readonly #exchange: Exchange;

  private constructor(
    exchange: Exchange,
    first: VectorStep<Observation>,
    layout: VectorClient<Action, Observation>['layout'],
  ) {
    this.#exchange = exchange;
    this.size = first.dones.length;
    this.first = first;
    this.layout = layout;
  }

  /** @throws ServerError, CapacityError, ConnectionError, TimeoutError */
  static async open<Action, Observation>(
    exchange: Exchange,
    options: VectorOptions,
  ): Promise<VectorClient<Action, Observation>> {
    const { data } = await exchange.request({ type: 'vector_reset', data: options });
    return new VectorClient<Action, Observation>(
      exchange,
      data as unknown as VectorStep<Observation>,
      data.layout,
    );
  }

  /**
   * Plays an action on each environment. One whose episode has ended ignores its action and starts the next episode.
   * @throws ServerError, ConnectionError, TimeoutError
   */
  async step(actions: readonly Action[]): Promise<VectorStep<Observation>> {
    const { data } = await this.#exchange.request({ type: 'vector_step', data: { actions } });
    return data as unknown as VectorStep<Observation>;
  }

  /**
   * The same with rows of float32, as `layout` names them. Needs the format `float32`.
   * @param actions shape n x width of the action
   */
  async stepFloats(actions: Float32Array): Promise<VectorFloats> {
    const bytes = await this.#exchange.requestBytes(
      new Uint8Array(actions.buffer, actions.byteOffset, actions.byteLength),
    );
    const floats = new Float32Array(bytes.buffer);
    return {
      rewards: floats.subarray(0, this.size),
      dones: floats.subarray(this.size, 2 * this.size),
      observations: floats.subarray(2 * this.size),
    };
  }
}

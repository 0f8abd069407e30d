import { type FleetAction, fleet } from '@servegym/environments';
import type { FleetPolicy } from './fleet-policy.ts';

/** As many replicas all the time, with the other settings of the task. */
export class StaticPolicy implements FleetPolicy {
  readonly name: string;
  readonly #asked: number | undefined;
  #replicas: number | undefined;

  /** @param replicas Default: the best in training on the task that is played; the task's own where nothing is recorded */
  constructor(replicas?: number) {
    this.#asked = this.#replicas = replicas;
    this.name = replicas === undefined ? 'static' : `static:${replicas}`;
  }

  reset({ taskId }: Parameters<FleetPolicy['reset']>[0]): void {
    this.#replicas = this.#asked ?? fleet.anchors.reference(String(taskId))?.constantReplicas;
  }

  act({ previousAction }: Parameters<FleetPolicy['act']>[0]): FleetAction {
    return { ...previousAction, replicas: this.#replicas ?? previousAction.replicas };
  }
}

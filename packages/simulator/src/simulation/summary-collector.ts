import type { Engine } from '../engine/engine.ts';
import { msFromTicks } from '../engine/ticks.ts';
import { summarizeInPlace } from '../statistics/summary.ts';
import type { SimulationSummary } from './simulation-run.ts';
import type { CompletionCollector } from './trace-server.ts';

const PIECE = 2 ** 16;

/** Values in order, in pieces, so that what is there is not copied when more come. */
class Column {
  private readonly pieces: Float64Array[] = [];
  private count = 0;

  push(value: number): void {
    const at = this.count++ % PIECE;
    if (at === 0) this.pieces.push(new Float64Array(PIECE));
    this.pieces[this.pieces.length - 1][at] = value;
  }

  /** Takes all values out. */
  drain(): Float64Array {
    const values = new Float64Array(this.count);
    for (const [i, piece] of this.pieces.entries()) {
      values.set(piece.subarray(0, Math.min(PIECE, this.count - i * PIECE)), i * PIECE);
    }
    this.pieces.length = 0;
    this.count = 0;
    return values;
  }
}

/** Gathers the latencies that a summary is made of: 24 bytes a request. */
export class SummaryCollector implements CompletionCollector {
  private lastTokenMs = 0;
  private readonly ttftMs = new Column();
  private readonly tpotMs = new Column();
  private readonly e2eMs = new Column();

  take(engine: Engine, origin: number): void {
    const { count, arrivals, firstTokens, lastTokens, outputs } = engine.completions;
    // The processes of a front end answer in no order.
    let latest = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < count; i++) {
      this.ttftMs.push(msFromTicks(firstTokens[i] - arrivals[i]));
      this.e2eMs.push(msFromTicks(lastTokens[i] - arrivals[i]));
      if (outputs[i] > 1) this.tpotMs.push(msFromTicks(lastTokens[i] - firstTokens[i]) / (outputs[i] - 1));
      if (lastTokens[i] > latest) latest = lastTokens[i];
    }
    this.lastTokenMs = Math.max(this.lastTokenMs, msFromTicks(latest + origin));
    engine.completions.clear();
    engine.firstTokens.clear();
  }

  /** The collected figures, once: they are drained. */
  summary(): Pick<SimulationSummary, 'simulatedMs' | 'ttft' | 'tpot' | 'e2e'> {
    return {
      simulatedMs: this.lastTokenMs,
      ttft: summarizeInPlace(this.ttftMs.drain()),
      tpot: summarizeInPlace(this.tpotMs.drain()),
      e2e: summarizeInPlace(this.e2eMs.drain()),
    };
  }
}

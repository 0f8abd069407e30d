// biome-ignore-all lint/suspicious/noTemplateCurlyInString: faults of template strings

/** A fault: text that stands in the file exactly once, and text that takes its place. */
export type SearchAndReplace = readonly [search: string, replace: string];

/** The faults of one source file. */
export interface FaultyFile {
  /** From the root of the repository. */
  readonly path: string;
  /** Tests that should find them, the likeliest first. */
  readonly tests: readonly string[];
  readonly faults: readonly SearchAndReplace[];
}

const LEARNING = 'packages/agents/src/learning';
const PLAN = 'packages/operators/src/plan';
const TUNE = 'packages/operators/src/tune';
const REPORT = 'packages/operators/src/report';
const ENVIRONMENTS = 'packages/environments/src';
const OPENENV = 'packages/openenv/src';

const PPO: readonly FaultyFile[] = [
  {
    path: `${LEARNING}/ppo.ts`,
    tests: [
      `${LEARNING}/ppo-update.test.ts`,
      `${LEARNING}/ppo-loss.test.ts`,

      `${LEARNING}/ppo-advantages.test.ts`,
      `${LEARNING}/ppo.test.ts`,
    ],
    faults: [
      // The advantages.
      ['    standardize(advantages);\n', ''],
      ['values[i] = (values[i] - center) / deviation;', 'values[i] = values[i] / deviation;'],
      ['values[i] = (values[i] - center) / deviation;', 'values[i] = values[i] - center;'],
      [
        '    subtractTraceBaseline({ environments, steps, seeds, stepIndices }, groupSize, advantages);\n',
        '',
      ],
      ['this.#targets[at] = advantages[at] + this.#values[at]', 'this.#targets[at] = advantages[at]'],
      ['this.#rewards[at] = rewards[at] / deviation', 'this.#rewards[at] = rewards[at]'],
      [
        'this.options.gamma * this.#discountedReturns[e] + rewards[at]',
        'this.#discountedReturns[e] + rewards[at]',
      ],
      ['      this.#discountedReturns[e] = 0;\n', ''],
      ['      this.#episodeReturns[e] = 0;\n', ''],
      [
        'if (ends[at] !== TRUNCATED && !(isLast && ends[at] === RUNNING)) continue;',
        'if (!(isLast && ends[at] === RUNNING)) continue;',
      ],
      [
        'if (ends[at] !== TRUNCATED && !(isLast && ends[at] === RUNNING)) continue;',
        'if (ends[at] !== TRUNCATED) continue;',
      ],
      ['const worthNext = ends[at] === TERMINATED ? 0 : next;', 'const worthNext = next;'],
      [
        'const delta = rewards[at] + gamma * worthNext - values[at];',
        'const delta = rewards[at] + worthNext - values[at];',
      ],
      [
        'const delta = rewards[at] + gamma * worthNext - values[at];',
        'const delta = rewards[at] + gamma * worthNext;',
      ],
      ['(running ? gamma * lambda * advantage : 0)', 'gamma * lambda * advantage'],
      ['(running ? gamma * lambda * advantage : 0)', '(running ? gamma * advantage : 0)'],
      ['(running ? gamma * lambda * advantage : 0)', '(running ? lambda * advantage : 0)'],
      [
        'if (others > 0) advantages[first + i] = before[i] - sum / others;',
        'if (others > 0) advantages[first + i] = before[i] + sum / others;',
      ],
      [
        'if (others > 0) advantages[first + i] = before[i] - sum / others;',
        'if (others > 0) advantages[first + i] = before[i] - sum;',
      ],
      ['if (j === i || !same) continue;', 'if (!same) continue;'],
      ['if (j === i || !same) continue;', 'if (j === i) continue;'],
      // The minibatches.
      ['const isActorFixed = this.#steps < this.options.criticOnlySteps;', 'const isActorFixed = false;'],
      [
        'const isActorFixed = this.#steps < this.options.criticOnlySteps;',
        'const isActorFixed = this.#steps <= this.options.criticOnlySteps;',
      ],
      [
        'if (isActorFixed) gradients.fill(0, 0, this.network.actorParameterCount);',
        'if (isActorFixed) gradients.fill(0, this.network.actorParameterCount);',
      ],
      ['      shuffle(order, random);\n', ''],
      ['epoch < epochs; epoch++', 'epoch < 1; epoch++'],
      ['if (loss.approxKl > targetKl) {', 'if (false) {'],
      ['          gradients.fill(0);\n          break passes;', '          break passes;'],
      ['`minibatches after ${this.#steps} steps`', "'minibatches'"],
      ['this.targets[row] = targets[at];', 'this.targets[row] = targets[row];'],
      ['this.advantages[row] = advantages[at];', 'this.advantages[row] = advantages[row];'],
      // The loss.
      ['Math.max(1 - clipCoef, Math.min(1 + clipCoef, ratio))', 'ratio'],
      [
        'const inside = ratio * advantage <= clippedRatio * advantage;',
        'const inside = ratio * advantage >= clippedRatio * advantage;',
      ],
      ['inside ? (-ratio * advantage) / rows : 0', '(-ratio * advantage) / rows'],
      ['inside ? (-ratio * advantage) / rows : 0', 'inside ? (-ratio * advantage) : 0'],
      ['      -entropyCoef / rows,\n', '      entropyCoef / rows,\n'],
      ['approxKl += ratio - 1 - logRatio;', 'approxKl += -logRatio;'],
      [
        'critic.outputGradients[row] = (valueCoef * error) / rows;',
        'critic.outputGradients[row] = error / rows;',
      ],
      ['if (ratio !== clippedRatio) clipped++;', 'if (!inside) clipped++;'],
      [
        'ratioError = Math.max(ratioError, Math.abs(ratio - 1));',
        'ratioError = Math.max(ratioError, ratio - 1);',
      ],
      // Schedules and resumption.
      ['learningRate: this.options.learningRate * (1 - progress)', 'learningRate: this.options.learningRate'],
      ['start + (end - start) * progress', 'start'],
      ['this.network.keepBonus = schedule.keepBonus;', 'this.network.keepBonus = 0;'],
      ['      observations.observe(rollout.observations, at);\n', ''],
      ['checkpoint?.discountedReturns ?? new Float64Array(environments),', 'new Float64Array(environments),'],
      ['checkpoint?.episodeReturns ?? new Float64Array(environments)', 'new Float64Array(environments)'],
      ['const returns = checkpoint?.returns ?? actor?.returns;', 'const returns = checkpoint?.returns;'],
      [
        'return 1 - variance(errors) / (variance(targets) + 1e-12);',
        'return variance(errors) / (variance(targets) + 1e-12);',
      ],
    ],
  },
  {
    path: `${LEARNING}/actor-critic.ts`,
    tests: [
      `${LEARNING}/actor-critic.test.ts`,
      `${LEARNING}/ppo-update.test.ts`,
      `${LEARNING}/ppo-loss.test.ts`,
      `${LEARNING}/ppo.test.ts`,
    ],
    faults: [
      ['Math.min(1, maxGradNorm / (Math.sqrt(squares) + 1e-6))', '1'],
      ['Math.min(1, maxGradNorm / (Math.sqrt(squares) + 1e-6))', 'maxGradNorm / (Math.sqrt(squares) + 1e-6)'],
      ['Math.min(1, maxGradNorm / (Math.sqrt(squares) + 1e-6))', 'Math.min(1, maxGradNorm / squares)'],
      ['    gradients.fill(0);\n', ''],
      ['    this.#adamSteps++;\n', '    this.#adamSteps = 1;\n'],
      ['    this.#adamSteps = adamSteps;\n', ''],
      ['    this.heads.favor(logits, binsInForce, this.keepBonus, rows);\n', ''],
      ['const ACTOR_OUTPUT_GAIN = 0.01;', 'const ACTOR_OUTPUT_GAIN = 10;'],
    ],
  },
  {
    path: `${LEARNING}/running-normalizer.ts`,
    tests: [`${LEARNING}/running-normalizer.test.ts`, `${LEARNING}/ppo.test.ts`],
    faults: [
      ['Math.max(-NORMALIZED_CLIP, Math.min(NORMALIZED_CLIP, value))', 'value'],
      [
        'this.#spread[i] += distance * (from[at] - this.#mean[i]);',
        'this.#spread[i] += distance * distance;',
      ],
      ['this.#spread[feature] / this.#rows + EPSILON', 'this.#spread[feature] / this.#rows'],
      ['normalizer.#rows = rows;', ''],
    ],
  },
];

const TUNING: readonly FaultyFile[] = [
  {
    path: `${TUNE}/pareto-front.ts`,
    tests: [`${TUNE}/pareto-front.test.ts`],
    faults: [
      ['!points.some((other) => isBetter(other, point))', 'points.some((other) => isBetter(other, point))'],
      ['isBetter(other, point)', 'isBetter(point, other)'],
      ['b.ttftP99Ms / a.ttftP99Ms', 'a.ttftP99Ms / b.ttftP99Ms'],
      ['b.tpotP99Ms / a.tpotP99Ms', 'b.ttftP99Ms / a.ttftP99Ms'],
      ['a.sustained / Math.max(1e-9, b.sustained)', 'b.sustained / Math.max(1e-9, a.sustained)'],
      ['      a.quality / b.quality,\n', ''],
      ['ratios.every((ratio) => ratio >= 1)', 'ratios.some((ratio) => ratio >= 1)'],
      ['ratios.some((ratio) => ratio > ALIKE)', 'ratios.some((ratio) => ratio > 1)'],
      ['rank < MOST_CHOICES || before < OF_EACH_KIND', 'rank < MOST_CHOICES'],
      [
        'const sustained = sustainedRate(all, traffic, slo);',
        'const sustained = sustainedRate(all, traffic, slo) / 2;',
      ],
      ['.sort((a, b) => a.load - b.load)', ''],
    ],
  },
  {
    path: `${TUNE}/finalists.ts`,
    tests: [`${TUNE}/finalists.test.ts`],
    faults: [
      ['2 * searched - value + heldOutDraws[draw] - heldOut', 'value'],
      ['2 * searched - value + heldOutDraws[draw] - heldOut', '2 * searched - value'],
      ['2 * searched - value + heldOutDraws[draw] - heldOut', 'heldOutDraws[draw]'],
      ['2 * searched - value + heldOutDraws[draw] - heldOut', 'searched + value - heldOutDraws[draw]'],
      ['interval: percentileInterval(heldOutDraws) }', 'interval: percentileInterval(searchedDraws) }'],
      ['Math.max(1e-9, resampled[1][defaultAt][draw])', 'base'],
      ['others.sort((a, b) => b.heldOut.value - a.heldOut.value)', 'others'],
      ['differentOf(ranked).slice(0, FINALISTS)', 'ranked.slice(0, FINALISTS)'],
      ['choose(ranked.find(({ candidate }) => candidate.split));', ''],
      ['choose(ranked.find(({ candidate }) => candidate.priority));', ''],
      ['choose(ranked.find(({ candidate }) => candidate.speculationDepth === 0));', ''],
      [
        'const [searched, heldOut] = [rateAt(0, i), rateAt(1, i)];',
        'const [heldOut, searched] = [rateAt(0, i), rateAt(1, i)];',
      ],
      ['searchedLoad: sustainedLoad(points[0][i], slo)', 'searchedLoad: searched'],
    ],
  },
  {
    path: `${TUNE}/sustained-load.ts`,
    tests: [`${TUNE}/sustained-load.test.ts`],
    faults: [
      ['if (sloUse(point, slo) <= 1) low = load;', 'if (sloUse(point, slo) >= 1) low = load;'],
      ['Math.sqrt(low * high)', '(low + high) / 2'],
      ['return point.load <= LEAST_LOAD ? 0 :', 'return'],
      ['|| high <= floor) break;', ') break;'],
      ['sloUse(point, slo, weights)', 'sloUse(point, slo)'],
      ['below.load * (point.load / below.load) ** share', 'below.load'],
      ['const share = -Math.log(below.use)', 'const share = Math.log(use)'],
      ['if (high / low <= tolerance ||', 'if (high / low <= 1.5 ||'],
      ['low >= MOST_LOAD ||', ''],
      ['return points.sort((a, b) => a.load - b.load);', 'return points;'],
    ],
  },
  {
    path: `${TUNE}/load-point.ts`,
    tests: [`${TUNE}/load-point.test.ts`, `${TUNE}/sustained-load.test.ts`],
    faults: [
      ['use = Math.max(use, sum / total / allowed);', 'use = sum / total / allowed;'],
      ['quantile === null ? 1 : Math.max(1e-9, 1 - quantile)', '1'],
      [
        'quantile === null ? 1 : Math.max(1e-9, 1 - quantile)',
        'quantile === null ? 1 : Math.max(1e-9, quantile)',
      ],
      [
        'const total = own === null || own === undefined ? all : weighted(own, weights);',
        'const total = all;',
      ],
      [
        '(weighted(goodEven) + weighted(goodOdd)) / weighted(requests)',
        'weighted(goodEven) / weighted(requests)',
      ],
      ['const isWithin = !(latency > limitMs);', 'const isWithin = latency < limitMs;'],
      ['if (isGood) (id % 2 === 0 ? goodEven : goodOdd)[block] += 1;', 'if (isGood) goodEven[block] += 1;'],
      ['priorities?.[id] !== priorityClass) continue;', 'false) continue;'],
      ['(Number.isNaN(latency) ? 0 : latency / limitMs) - UNSERVED', 'latency / limitMs'],
      ['quantile === null ? count * UNSERVED : count', 'quantile === null ? 0 : count'],
      ['if (!isWithin) isGood = false;', ''],
      ["if (metric === 'ttft') return run.ttftMs;", "if (metric === 'ttft') return run.tpotMs;"],
      ['ttftP99Ms: percentileOfSorted(sorted.ttft, 99)', 'ttftP99Ms: percentileOfSorted(sorted.ttft, 90)'],
      ['tpotP99Ms: percentileOfSorted(sorted.tpot, 99)', 'tpotP99Ms: percentileOfSorted(sorted.ttft, 99)'],
      ['quantile === null ? mean(own)', 'quantile === null ? percentileOfSorted(own, 50)'],
      ['scaleRate(trace, times)', 'trace'],
    ],
  },
  {
    path: `${TUNE}/controller-gain.ts`,
    tests: [`${TUNE}/controller-gain.test.ts`],
    faults: [
      ['judge: points.map((point) => point.goodOdd)', 'judge: points.map((point) => point.goodEven)'],
      ['clairvoyant[b] += judge[own][b];', 'clairvoyant[b] += judge[overall][b];'],
      ['gain: seen - best', 'gain: best - seen'],
      ['if (value > values[best]) best = i;', 'if (value < values[best]) best = i;'],
    ],
  },
  {
    path: 'packages/simulator/src/statistics/bootstrap.ts',
    tests: ['packages/simulator/src/statistics/block-bootstrap.test.ts', `${TUNE}/finalists.test.ts`],
    faults: [
      ['low: at(0.025), high: at(0.975)', 'low: at(0.25), high: at(0.75)'],
      ['values.toSorted((a, b) => a - b)', 'values'],
      ['draw < blocks; draw += 1', 'draw < 1; draw += 1'],
    ],
  },
  {
    path: `${TUNE}/space-filling.ts`,
    tests: [`${TUNE}/space-filling.test.ts`],
    faults: [
      ['speculationDepth: 5,', 'speculationDepth: 2,'],
      ['weight /= base;', ''],
      ['if (isPossible(profile, candidate)) found', 'found'],
      ['.filter((near) => isPossible(profile, near))', ''],
      ['.filter((near) => candidateKey(near) !== candidateKey(candidate))', ''],
      [
        '[at - 1, at + 1].filter((i) => i >= 0 && i < values.length)',
        '[at + 1].filter((i) => i >= 0 && i < values.length)',
      ],
    ],
  },
  {
    path: `${TUNE}/traffic.ts`,
    tests: [`${TUNE}/traffic.test.ts`],
    faults: [
      [
        'heldOut: joinBlocks(blocks.filter((_, b) => b % 2 === 1))',
        'heldOut: joinBlocks(blocks.filter((_, b) => b % 2 === 0))',
      ],
      ['now += durationMs;', ''],
      ['Math.floor((b * requests) / BLOCKS)', 'b * size'],
      ['(1000 * (arrivalMs.length - 1))', '(1000 * (arrivalMs.length + 999))'],
      ['(offset) => offset - prefixBlocks.offsets[start]', '(offset) => offset'],
    ],
  },
  {
    path: `${TUNE}/slo.ts`,
    tests: [`${TUNE}/slo.test.ts`],
    faults: [
      ["(unit === 's' ? 1000 : 1)", '1'],
      ['if (limitMs === 0 || quantile === 0) {', 'if (limitMs === 0) {'],
      ['Number(statistic!.slice(1)) / 100', 'Number(statistic!.slice(1))'],
    ],
  },
  {
    path: `${TUNE}/serving-command.ts`,
    tests: [`${TUNE}/serving-command.test.ts`],
    faults: [
      ['`--max-num-seqs ${candidate.maxNumSeqs}`', '`--max-num-seqs ${candidate.maxNumBatchedTokens}`'],
      [
        "candidate.prefixCaching ? '--enable-prefix-caching' : '--no-enable-prefix-caching'",
        "'--enable-prefix-caching'",
      ],
      [
        '`--speculative-num-draft-tokens ${speculationDepth + 1}`',
        '`--speculative-num-draft-tokens ${speculationDepth}`',
      ],
      ["(candidate.priority ? ['--scheduling-policy priority'] : [])", '[]'],
    ],
  },
  {
    path: `${TUNE}/candidate.ts`,
    tests: [`${TUNE}/space-filling.test.ts`, `${TUNE}/candidate.test.ts`],
    faults: [
      ['maxNumBatchedTokens >= maxNumSeqs &&', ''],
      ['>= minQuality', '> minQuality'],
      ['isLarge ? 1024 : 256', 'isLarge ? 256 : 1024'],
      ['&& !/a100/i.test(gpu.name)', ''],
      ['.filter(([, knob]) => than === undefined || candidate[knob] !== than[knob])', ''],
      ['speculationDepth === 0 || candidate.speculationMaxBatch', 'candidate.speculationMaxBatch'],
      ['isIdle && space[knob].length > 1 ? off', 'isIdle ? off'],
    ],
  },
  {
    path: `${PLAN}/least-time.ts`,
    tests: [`${PLAN}/least-time.test.ts`],
    faults: [
      ['if (isPrefix && seen.has(id))', 'if (seen.has(id))'],
      ['const computed = Math.max(1, input - cached);', 'const computed = input;'],
      ['token * (prefill + decodes)', '4 * token * (prefill + decodes)'],
      ['Math.min(...rates.map(cost))', 'Math.max(...rates.map(cost))'],
      ['decodes / shared / MOST_SEQUENCES', 'decodes'],
    ],
  },
  {
    path: `${PLAN}/autoscaled-engines.ts`,
    tests: [`${PLAN}/autoscaled-engines.test.ts`],
    faults: [
      ['at + before + 1', 'at + 1'],
      ['Math.max(0, at - after)', 'at'],
      ['Math.min(most, ', '('],
      ['(demand - base) / sustained', 'demand / sustained'],
    ],
  },
  {
    path: 'packages/simulator/src/simulation/router.ts',
    tests: ['packages/simulator/src/simulation/simulate-trace.test.ts'],
    faults: [
      [' + matched[at] / input', ''],
      ['record(prefix, at % INDEXED)', 'record(prefix, 0)'],
      ['futureCount) / this.weights[at]', 'futureCount)'],
    ],
  },
  {
    path: `${TUNE}/tune.ts`,
    tests: [`${TUNE}/tune.test.ts`],
    faults: [
      ['if (sloUse(point, slo) <= 1) {', 'if (true) {'],
      [
        'const usdPerHour = replicas * profile.gpu.count * profile.gpu.usdPerHour;',
        'const usdPerHour = profile.gpu.usdPerHour;',
      ],
      ['const step = fewestEngines(winner.candidate);', 'const step = 1;'],
      ['Math.min(most, Math.max(fewest, expected))', 'fewest'],
    ],
  },
  {
    path: `${TUNE}/search.ts`,
    tests: [`${TUNE}/search.test.ts`],
    faults: [
      ['(a, b) => b.score - a.score ||', '(a, b) => a.score - b.score ||'],
      ['if (found.score < best.score * (1 - SIMPLER)) return;', ''],
      ['(changes(each) < changes(best) ? each : best)', '(changes(each) > changes(best) ? each : best)'],
      ['round <= MOST_ROUNDS', 'round < 1'],
      [
        '1 / (worst * Math.max(1, sloUse(point, slo) / 100))',
        'worst * Math.max(1, sloUse(point, slo) / 100)',
      ],
      ['await measureFully(alwaysKept, { guess, step: 1.6, tolerance: 1.04 });', ''],
      ['guess = Math.max(LEAST_LOAD, guess * LOWER);', 'break;'],
      ['(isClosedLoop ? FLOOR * load : load)', 'load'],
    ],
  },
  {
    path: `${REPORT}/terminal.ts`,
    tests: [`${REPORT}/terminal.test.ts`],
    faults: [
      [
        'const column = Math.round(((Math.log(x) - low) / span) * (columns - 1));',
        'const column = Math.round((y / top) * (columns - 1));',
      ],
      ['rows - 1 - Math.round(', 'Math.round('],
      ['const xs = shown.map(({ x }) => Math.log(x));', 'const xs = shown.map(({ x }) => x);'],
    ],
  },
  {
    path: `${REPORT}/tune-plots.ts`,
    tests: [`${REPORT}/tune-plots.test.ts`],
    faults: [
      [
        'cx="${px(x.at(point.ttftP99Ms))}" cy="${px(y.at(point.sustained))}"',
        'cx="${px(x.at(point.tpotP99Ms))}" cy="${px(y.at(point.sustained))}"',
      ],
      ['fill="${sloUse <= 1 ? colour : colours.paper}"', 'fill="${sloUse >= 1 ? colour : colours.paper}"'],
      ['Math.log(point.tpotP99Ms / least)', 'Math.log(most / point.tpotP99Ms)'],
    ],
  },
  {
    path: `${REPORT}/svg-chart.ts`,
    tests: [`${REPORT}/tune-plots.test.ts`],
    faults: [
      [
        'at: (value) => from + (value / end) * (to - from)',
        'at: (value) => to + (value / end) * (from - to)',
      ],
      ['Math.log(value / low) / Math.log(high / low)', 'value / high'],
    ],
  },
];

const GRADERS: readonly FaultyFile[] = [
  {
    path: `${ENVIRONMENTS}/regret-score.ts`,
    tests: [`${ENVIRONMENTS}/regret-score.test.ts`],
    faults: [
      ['const CONSTANT_SCORE = 0.5;', 'const CONSTANT_SCORE = 0.6;'],
      ['room >= LEAST_ROOM && ', ''],
      ['middle - low >= apart && ', ''],
      [' && high - middle >= apart', ''],
      ['(low - total) / (high - low)', 'low - total'],
      ['(-slopes[slopes.length - 1] / rest) * (total - high)', '(-slopes[0] / rest) * (total - high)'],
      ['Math.max(clairvoyant, low + 1e-6)', 'clairvoyant'],
      ['Math.min(1 - Number.EPSILON, Math.max(Number.MIN_VALUE, score))', 'score'],
    ],
  },
  {
    path: `${ENVIRONMENTS}/grading.ts`,
    tests: [
      `${ENVIRONMENTS}/fleet/environment.test.ts`,
      `${ENVIRONMENTS}/fleet/fleet-task.test.ts`,
      `${ENVIRONMENTS}/llmserve/grader.test.ts`,
      `${ENVIRONMENTS}/llmserve/masked-knobs.test.ts`,
    ],
    faults: [
      ['episode.totals.reward + unplayed * parts.unplayedReward(episode)', 'episode.totals.reward'],
      ['if (actions.length > task.windows) {', 'if (false) {'],
      ['requireMaskedKnobsHeld(task, action)', 'action'],
      ['regret: clairvoyant - total', 'regret: bound - total + 1'],
      ['gap: bound - clairvoyant', 'gap: clairvoyant'],
      ['if (gain < 0) return', 'if (gain > 0) return'],
      ["total > tuned ? 'More' : 'Not more'", "total > tuned ? 'Not more' : 'More'"],
      ['(gain / (clairvoyant - standard)) * 100', 'gain * 100'],
    ],
  },
  {
    path: `${ENVIRONMENTS}/fleet/grader.ts`,
    tests: [`${ENVIRONMENTS}/fleet/environment.test.ts`],
    faults: [['unplayedReward: (episode) => -fullBill(episode)', 'unplayedReward: () => 0']],
  },
  {
    path: `${ENVIRONMENTS}/fleet/anchors/fleet-anchors.ts`,
    tests: [`${ENVIRONMENTS}/fleet/environment.test.ts`],
    faults: [
      ['const standard = played(hpaInFlight());', 'const standard = played(new RateRule());'],
      ['best + fleetReturns.foresight(task.id) * (bound - best)', 'best'],
      ['const best = Math.max(standard, rule);', 'const best = bound;'],
    ],
  },
  {
    path: `${ENVIRONMENTS}/llmserve/grader.ts`,
    tests: [`${ENVIRONMENTS}/llmserve/grader.test.ts`],
    faults: [['unplayedReward: () => -1', 'unplayedReward: () => 0']],
  },
  {
    path: `${ENVIRONMENTS}/llmserve/reward.ts`,
    tests: [
      `${ENVIRONMENTS}/llmserve/serve-episode.test.ts`,
      `${ENVIRONMENTS}/llmserve/golden-trajectories.test.ts`,
    ],
    faults: [
      ['cost: -weights.cost * outcome.costShare', 'cost: weights.cost * outcome.costShare'],
      ['memory: -weights.memory * outcome.memoryShare', 'memory: 0'],
      [
        'Math.max(-1, Math.min(1, throughput + slo + memory + cost + quality))',
        'throughput + slo + memory + cost + quality',
      ],
      ['quality: -outcome.qualityValue * outcome.qualityLoss', 'quality: -outcome.qualityLoss'],
    ],
  },
  {
    path: `${ENVIRONMENTS}/inferencegym/gym-grader.ts`,
    tests: [`${ENVIRONMENTS}/inferencegym/gym-grader.test.ts`],
    faults: [
      ['1 - (3 * unplayed) / EPISODE_STEPS', '1 - unplayed / EPISODE_STEPS'],
      ['Math.min(raw, raw * completeness)', 'raw'],
      [
        'const mostSaved = servesWorse ? savings(task, standardTotals) : WHATEVER_IS_SAVED;',
        'const mostSaved = WHATEVER_IS_SAVED;',
      ],
      ['means.served_share < standard.served_share || ', ''],
      [' || means.slo_violation_rate > standard.slo_violation_rate', ''],
      ['(totals.ttftMs + unplayed * UNPLAYED_TTFT_MS)', 'totals.ttftMs'],
      ['(totals.violationRate + unplayed)', 'totals.violationRate'],
      ['(totals.served / totals.arrived) * (played / EPISODE_STEPS)', 'totals.served / totals.arrived'],
      ['value: memory * means.served_share', 'value: memory'],
      ['value: cost * means.served_share', 'value: cost'],
      ['(1 - actionVariance(totals)) * means.served_share', 'means.served_share'],
      ['held(1 - (peakMemoryGb - memoryLimitGb) / MEMORY_SLOPE_GB)', '1'],
      ['Math.max(0, 1 - cost / costBudget)', '1'],
      ['squares / count - mean * mean', 'squares / count'],
      ['1 - means.ttft_p50_ms / task.sloMs[0]', 'means.ttft_p50_ms / task.sloMs[0]'],
      ['(means.tokens_per_sec - reference) / (best - reference)', 'means.tokens_per_sec / best'],
      ['if (value > 1 - MARGIN) return 1 - insideUnitInterval(1 - value);', ''],
      [
        'b.weight * (1 - b.value) - a.weight * (1 - a.value)',
        'a.weight * (1 - a.value) - b.weight * (1 - b.value)',
      ],
      ['if (actions.length > EPISODE_STEPS) {', 'if (false) {'],
    ],
  },
  {
    path: `${ENVIRONMENTS}/inferencegym/gym-reward.ts`,
    tests: [
      `${ENVIRONMENTS}/inferencegym/gym-episode.test.ts`,
      `${ENVIRONMENTS}/inferencegym/golden-trajectories.test.ts`,
    ],
    faults: [
      ['- weights.delta * cost', '+ weights.delta * cost'],
      ['return Math.max(-1, Math.min(1, sum));', 'return sum;'],
    ],
  },
];

const SESSIONS: readonly FaultyFile[] = [
  {
    path: `${OPENENV}/sessions/session-registry.ts`,
    tests: [
      `${OPENENV}/sessions/session-registry.test.ts`,
      `${OPENENV}/server/durability.test.ts`,
      `${OPENENV}/server/web-socket.test.ts`,
    ],
    faults: [
      ['session.lastUsedAt < oldest.lastUsedAt', 'session.lastUsedAt > oldest.lastUsedAt'],
      ['if (!oldest || session.lastUsedAt < oldest.lastUsedAt) oldest = session;', 'oldest ??= session;'],
      [
        'if (this.#attached.has(session.id) || session.busy || session === except) continue;',
        'if (session.busy || session === except) continue;',
      ],
      [
        'if (this.#attached.has(session.id) || session.busy || session === except) continue;',
        'if (this.#attached.has(session.id) || session === except) continue;',
      ],
      [
        'if (this.#attached.has(session.id) || session.busy || session === except) continue;',
        'if (this.#attached.has(session.id) || session.busy) continue;',
      ],
      ['this.size + slots > this.maxSessions', 'this.size + slots >= this.maxSessions'],
      ['this.size + slots > this.maxSessions', 'this.size > this.maxSessions'],
      ['now - session.lastUsedAt >= limit', 'now - session.lastUsedAt > limit'],
      ['!this.#attached.has(session.id) && !session.busy && now', '!session.busy && now'],
      ['!session.busy && now', 'now'],
      ["if (this.#draining) throw new OpenEnvError('DRAINING', {});", ''],
      [
        'if (!this.#sessions.has(id) || this.#attached.has(id)) return false;',
        'if (!this.#sessions.has(id)) return false;',
      ],
      ['if (this.#closing.has(id)) this.close(id).catch(() => {});', ''],
      ['this.#reserved -= slots;', ''],
      ['      this.#totalSize -= size;\n', ''],
      ['this.#totalSize += size - (this.#sizes.get(session) ?? 0);', 'this.#totalSize += size;'],
      ['    this.#setSize(session, 0);\n', ''],
      ['if (size <= this.#maxEpisodeSize) return size;', 'return size;'],
      ['if (size > this.#maxTotalSize) {', 'if (false) {'],
      ['if (wasHere) await this.#store?.remove(id);', ''],
      ['if (!this.#store || (await live.isOwned())) return live;', 'return live;'],
      ['const underWay = this.#resuming.get(id);', 'const underWay = undefined;'],
      [
        "if (stored.damage !== undefined) throw new OpenEnvError('SESSION_DAMAGED', { id, damage: stored.damage });",
        '',
      ],
      ['stored.environment.version !== version', 'false'],
      ['if (stored.environment.id !== this.#definition.id) this.#refuseForeign(id, stored);', ''],
      ['definition.replayable === false ? undefined : store', 'store'],
      ['size - (this.#sizes.get(session) ?? 0), session', 'size, session'],
      ['for (const listener of this.#closeListeners) listener(session);', ''],
    ],
  },
  {
    path: `${OPENENV}/sessions/session.ts`,
    tests: [
      `${OPENENV}/sessions/session.test.ts`,
      `${OPENENV}/sessions/session-registry.test.ts`,
      `${OPENENV}/server/web-socket.test.ts`,
      `${OPENENV}/server/durability.test.ts`,
      `${OPENENV}/server/http.test.ts`,
    ],
    faults: [
      ['if (this.#lastResult.done) {', 'if (false) {'],
      ['if (result.reward !== null && !Number.isFinite(result.reward)) {', 'if (false) {'],
      ['if (this.#keepsActions) this.#actions.push(action);', 'this.#actions.push(action);'],
      ['    this.#actions = [];\n    this.#stepCount = 0;', '    this.#stepCount = 0;'],
      ['    this.#stepCount = 0;\n    this.#lastResult = result;', '    this.#lastResult = result;'],
      ['        this.#failure = error;\n', ''],
      ['if (this.#failure) throw this.#failure;', ''],
      ['this.lastUsedAt = Date.now();', ''],
      ['await Promise.race([this.settled(), closeTimeout()]);', ''],
      ['await Promise.race([this.settled(), closeTimeout()]);', 'await this.settled();'],
      [
        'if (this.#running === null && !pace.isLong) return this.#track(run());',
        'return this.#track(run());',
      ],
      ['episodeId ?? randomUUID()', 'randomUUID()'],
      ['const index = this.#stepCount++;', 'const index = ++this.#stepCount;'],
      ['session.#stepCount = actions.length;', ''],
      ['session.#actions = [...actions];', ''],
      ['session.#episodeId = stored.episodeId;', ''],
      [
        '{ ...identity, ...this.environment.state(), ...identity }',
        '{ ...identity, ...this.environment.state() }',
      ],
      ['this.#running === null ? this.#readState()', 'true ? this.#readState()'],
    ],
  },
  {
    path: `${OPENENV}/sessions/acknowledged-marks.ts`,
    tests: [`${OPENENV}/sessions/sqlite-session-store.test.ts`],
    faults: [
      [
        'const isOwn = bytes.compare(markOf(sessionId), 0, NUMBER_AT, 0, NUMBER_AT) === 0;',
        'const isOwn = true;',
      ],
      ['key * MARK_BYTES) < MARK_BYTES', '0) < MARK_BYTES'],
      ['ordered[end].key === ordered[end - 1].key + 1', 'true'],
    ],
  },
  {
    path: `${OPENENV}/sessions/session-store.ts`,
    tests: [
      `${OPENENV}/sessions/stored-sessions.test.ts`,
      `${OPENENV}/sessions/sqlite-session-store.test.ts`,
    ],
    faults: [
      ['return digest(before + action);', 'return digest(before);'],
      ['return digest(before + action);', 'return digest(action);'],
      ['episodeId, reset]', 'episodeId]'],
    ],
  },
  {
    path: `${OPENENV}/sessions/session.ts`,
    tests: [`${OPENENV}/server/durability.test.ts`],
    faults: [['let result = await environment.reset(reset);', 'let result = await environment.reset({});']],
  },
];

const PROTOCOL: readonly FaultyFile[] = [
  {
    path: `${OPENENV}/server/answer-in-order.ts`,
    tests: [`${OPENENV}/server/answer-in-order.test.ts`, `${OPENENV}/server/web-socket.test.ts`],
    faults: [
      ['const MAX_WAITING = 64;', 'const MAX_WAITING = Number.POSITIVE_INFINITY;'],
      ['const MAX_UNREAD = 4 * 1024 * 1024;', 'const MAX_UNREAD = Number.POSITIVE_INFINITY;'],
      ['const UNREAD_LIMIT_MS = 60_000;', 'const UNREAD_LIMIT_MS = 2 ** 31 - 1;'],
      ['if (isOver()) socket.close(1000);', ''],
      ['if (socket.isPaused && waiting.length === 0 && !busy) socket.resume();', ''],
      ['      clearTimeout(timer);\n', ''],
      ['take(waiting.shift()!)', 'take(waiting.pop()!)'],
      ['    if (busy) {\n', '    if (false) {\n'],
    ],
  },
  {
    path: `${OPENENV}/protocol/errors.ts`,
    tests: [`${OPENENV}/protocol/errors.test.ts`],
    faults: [
      ['fields[name]', 'undefined'],
      ['...(code !== kind.webSocket && { reason: code }),', ''],
      ['(isInputError === true || ', '('],
    ],
  },
  {
    path: `${OPENENV}/server/session-socket.ts`,
    tests: [
      `${OPENENV}/server/web-socket.test.ts`,
      `${OPENENV}/server/conformance.test.ts`,
      `${OPENENV}/server/durability.test.ts`,
    ],
    faults: [
      ["if (key !== 'type' && (key !== 'data' || data === 'forbidden')) {", 'if (false) {'],
      [
        "if (key !== 'type' && (key !== 'data' || data === 'forbidden')) {",
        "if (key !== 'type' && key !== 'data') {",
      ],
      ["if (data !== 'required') return {};", 'return {};'],
      ['  if (!isJsonObject(payload))\n    throw', '  if (false)\n    throw'],
      ["throw new OpenEnvError('UNKNOWN_TYPE',", "throw new OpenEnvError('INVALID_JSON',"],
      [': { message, code, ...details };', ': { message, code };'],
      ['this.#parts.onCloseMessage(this.#socket);', ''],
      ['const isOver = () => session.failure !== null;', 'const isOver = () => false;'],
      [
        'JSON.stringify({ observation, reward, done, metadata })',
        'JSON.stringify({ observation, reward, done })',
      ],
    ],
  },
  {
    path: `${OPENENV}/protocol/read-json.ts`,
    tests: [`${OPENENV}/server/fuzz.test.ts`],
    faults: [
      ['if (++depth > MAX_JSON_DEPTH) {', 'if (++depth > MAX_JSON_DEPTH + 1) {'],
      ['++keysAt[depth] > MAX_KEYS_OF_OBJECT', '++keysAt[depth] >= MAX_KEYS_OF_OBJECT'],
      ['if (++keys > MAX_KEYS) return', 'if (false) return'],
      ['        keysAt[depth] = 0;\n', ''],
      ['(quote - first) % 2 === 1', 'quote !== first'],
      ['        position = endOfString(text, position);\n', ''],
      ['depth = Math.max(0, depth - 1);', ''],
    ],
  },
  {
    path: `${OPENENV}/server/json-rpc-endpoint.ts`,
    tests: [`${OPENENV}/server/json-rpc-endpoint.test.ts`, `${OPENENV}/server/tools.test.ts`],
    faults: [
      ['failure(null, parseError,', 'failure(null, invalidRequest,'],
      ['failure(null, invalidRequest,', 'failure(null, parseError,'],
      ['throw new JsonRpcFailure(methodNotFound,', 'throw new JsonRpcFailure(internalError,'],
      [
        "throw new JsonRpcFailure(invalidParams, 'Params must be an object')",
        "throw new JsonRpcFailure(internalError, 'Params must be an object')",
      ],
      ['if (!known) this.#sessions.close(target.id).catch(() => {});', ''],
      ['session ?? this.#sessions.open(caller?.name)', 'this.#sessions.open(caller?.name)'],
      ["if (typeof params.name !== 'string' || params.name === '') {", 'if (false) {'],
      ['return failure(id, jsonRpc, message,', 'return failure(id, internalError, message,'],
    ],
  },
  {
    path: `${OPENENV}/server/vector.ts`,
    tests: [`${OPENENV}/server/vector.test.ts`],
    faults: [
      ['seed: (base.seed ?? 0) + index', 'seed: base.seed ?? 0'],
      ['if (environments.awaitsReset(index)) {', 'if (false) {'],
      ['if (frame.byteLength !== bytes) {', 'if (false) {'],
      ['|| actions.length !== environments.size) {', ') {'],
      ['floats[length + index] = dones[index] ? 1 : 0;', 'floats[length + index] = 0;'],
      ['    this.#releaseSlots();\n', ''],
      ["readAt(['actions', index],", "readAt(['actions'],"],
      ['min(1).max(65_536)', 'min(0).max(65_536)'],
    ],
  },
  {
    path: `${OPENENV}/server/request-sessions.ts`,
    tests: [`${OPENENV}/server/http.test.ts`, `${OPENENV}/server/http.test.ts`],
    faults: [
      ['    if (sessionId !== undefined) this.set(caller, sessionId);\n', ''],
      ['    this.#sessionOf.delete(caller);\n', ''],
      ['if (this.#sessionOf.size > MAX_CALLERS)', 'if (false)'],
      ['if (authorization) return `authorization ${authorization}`;', ''],
    ],
  },
  {
    path: `${OPENENV}/protocol/validation-issues.ts`,
    tests: [
      `${OPENENV}/protocol/errors.test.ts`,
      `${OPENENV}/server/conformance.test.ts`,
      `${OPENENV}/server/http.test.ts`,
    ],
    faults: [
      ['if (found.length >= MAX_ISSUES) return;', ''],
      ["${isInclusive ? '_equal' : ''}`,", '`,'],
      ["const than = isLeast ? 'greater than' : 'less than';", "const than = 'greater than';"],
      [
        "return code === 'invalid_type' && format?.endsWith('int') ? INTEGER_EXPECTED : undefined;",
        'return undefined;',
      ],
      ["issue.code !== 'custom') {", 'false) {'],
    ],
  },
  {
    path: `${OPENENV}/sessions/episode.ts`,
    tests: [`${OPENENV}/server/episode-routes.test.ts`, `${OPENENV}/server/episode-routes.test.ts`],
    faults: [
      ['total += result.reward ?? 0;', ''],
      ['    digest.add(result);\n    onResult?.(result, index + 1);', '    onResult?.(result, index + 1);'],
      ['onResult?.(result, index + 1);', 'onResult?.(result, index);'],
      ['if (!(error instanceof EnvironmentError)) throw error;', 'throw error;'],
    ],
  },
  {
    path: 'packages/console/src/state/run.ts',
    tests: ['packages/console/src/state/run.test.ts'],
    faults: [
      ['if (epoch.value === now) this.#append(steps, by);', 'this.#append(steps, by);'],
      ['if (epoch.value === now) this.grade.value = answer;', 'this.grade.value = answer;'],
    ],
  },
];

const SEASONS: readonly FaultyFile[] = [
  {
    path: `${OPENENV}/boards/season-ledger.ts`,
    tests: [`${OPENENV}/boards/season.test.ts`],
    faults: [
      ['session === null && !this.#dealt.has(key)', 'session === null'],
      ['session === null && !this.#dealt.has(key)', 'false'],
      ['if (episode >= episodes) {', 'if (false) {'],
      ['    this.#requireInTime(key!);\n', ''],
      [
        '    const { number: submission } = this.#submissionOf(token);\n    this.#requireOpen();',
        '    const { number: submission } = this.#submissionOf(token);',
      ],
      ['ORDER BY turn DESC LIMIT 1', 'ORDER BY turn LIMIT 1'],
      [
        'remove: async () => {}',
        "remove: async (id) => void this.#database.prepare('DELETE FROM episode WHERE session = ?').run(id)",
      ],
      ['actions: row === undefined ? [] : this.#actionsOf(row.key)', 'actions: []'],
    ],
  },
  {
    path: `${OPENENV}/boards/season-environment.ts`,
    tests: [`${OPENENV}/boards/season.test.ts`],
    faults: [
      [
        '  return { observation, reward, done };',
        '  return { observation, reward, done, metadata: { seed: 1 } };',
      ],
      ["      seed: z.never('Ranked episodes have seeds of their own: leave it out').optional(),\n", ''],
      ['Math.max(1, Math.ceil(tookMs / resetMs)) * resetMs', 'resetMs'],
      ['    if (!Number.isInteger(episode)) {', '    if (false) {'],
      [
        'definition.id !== environment.id || definition.version !== environment.version',
        'definition.id !== environment.id',
      ],
    ],
  },
  {
    path: `${OPENENV}/boards/season-ledger.ts`,
    tests: [`${OPENENV}/boards/season.test.ts`],
    faults: [
      ['[submission, String(taskId), episode]', '[String(taskId), episode]'],
      ['[submission, String(taskId), episode]', '[submission, String(taskId)]'],
      ["createHmac('sha256', secret)", "createHmac('sha256', '')"],
    ],
  },
  {
    path: `${OPENENV}/boards/season-results.ts`,
    tests: [`${OPENENV}/boards/season.test.ts`],
    faults: [
      ['if (own !== season.commitment)', 'if (false)'],
      ['if (number !== index + 1)', 'if (false)'],
      ['digest !== judged.digest || done !== judged.done', 'false'],
      ['total !== judged.return || score !== judged.score', 'false'],
      ['if (!isClose(earned, claimed.return)) {', 'if (false) {'],
      ['  ledger.closeSeason();\n', ''],
    ],
  },
];

/** The faults by area. */
export const AREAS = {
  ppo: PPO,
  tune: TUNING,
  graders: GRADERS,
  sessions: SESSIONS,
  protocol: PROTOCOL,
  seasons: SEASONS,
} as const satisfies Record<string, readonly FaultyFile[]>;

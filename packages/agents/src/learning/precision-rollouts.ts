import { llmserve, type ServeAction, ServeEpisode, type ServeTask } from '@servegym/environments';
import { type EngineProfile, RandomStream } from '@servegym/simulator';
import { mean } from '@servegym/simulator/statistics';
import { windowOf } from '../core/policy.ts';
import { type ServeWindow, type SteadyAdvice, SteadyAdvisor } from '../policies/steady-state.ts';
import { ActorCritic, actorLayerSizes, shuffle } from './actor-critic.ts';
import type { SearchGeneration, SearchRun } from './cross-entropy-search.ts';
import { simdKernels } from './kernels.ts';
import { ANY_SERVER, PRECISION_LEARNER } from './learners.ts';
import { FeatureEncoder, trainingTraces } from './learning-environment.ts';
import { parameterCount } from './multilayer-perceptron.ts';
import { normalizeRow, RunningNormalizer } from './running-normalizer.ts';
import { type ActorWeights, actorLayers, TrainedActor } from './trained-actor.ts';

// One-step improvement of a rule by rollouts, see Bertsekas, "Rollout, Policy Iteration, and Distributed Reinforcement
// Learning", 2020. The rule is `steady-state`, the decision is the precision:
//
//   playLessons     at some windows of a training episode, play on with each precision, on the requests to come
//   learnValues     networks learn what each precision earns beyond the one that the rule advises
//   playPrecisions  take the precision that earns most, where it earns more than the margin

const MAX_GRAD_NORM = 1;
const TIERS = llmserve.bins.quantization_tier;
const { features: FEATURES } = PRECISION_LEARNER.environment;

/** Choices, made on validation episodes of the training distribution. */
const ROLLOUTS = {
  /** Windows that a precision is kept for, and windows over which returns are compared. */
  hold: 5,
  horizon: 14,
  /** Share of the windows at which precisions are tried, and of those from which one is held at random. */
  tried: 1 / 8,
  held: 1 / 50,
  /** Rounds: the networks of one play the next. */
  rounds: 3,
  /** Reward over the horizon that another precision must earn. */
  margin: 0.2,
  /** Reward that a window earns less while a backlog is served: the charge for each window that the end of a rollout leaves to serve. */
  backlog: 0.9,
  /** Gains beyond this count as this. */
  mostGain: 3,
  /** Networks whose values are averaged, and units of both hidden layers of each. */
  members: 4,
  hidden: 32,
  /** Passes over the lessons are so many that there are `minibatches`, and at most `passes`. */
  minibatches: 3000,
  passes: 400,
  minibatchSize: 256,
  learningRate: 1e-3,
  weightDecay: 0.3,
} as const;

/** Sees the windows of an episode as the networks do. */
class Onlooker {
  readonly advisor: SteadyAdvisor;
  readonly features = new Float32Array(FEATURES.length);
  readonly #encoder = new FeatureEncoder(FEATURES);

  constructor(task: ServeTask, profile: EngineProfile) {
    this.advisor = new SteadyAdvisor(task, profile);
  }

  see(window: ServeWindow): SteadyAdvice {
    const advice = this.advisor.advise(window);
    const seen = { ...window.observation, outlook: advice.outlook() };
    this.#encoder.encode(seen, window.previousAction, this.features);
    return advice;
  }

  /** Place of the precision that an actor takes in the window seen last. */
  chosen(actor: TrainedActor, { tier }: SteadyAdvice): number {
    const bins = Int32Array.of(tier);
    actor.act(this.features, bins);
    return bins[0]!;
  }
}

/** Plays the steady state of the precision that an actor takes. */
export function playPrecisions(task: ServeTask, profile: EngineProfile, actor: TrainedActor) {
  const onlooker = new Onlooker(task, profile);
  return (window: ServeWindow): ServeAction => {
    const advice = onlooker.see(window);
    return advice.at(onlooker.chosen(actor, advice));
  };
}

/** Rewards over the horizon of each precision beyond those of the advised one, from a state of an episode. */
interface Lesson {
  readonly features: Float32Array;
  readonly advised: number;
  readonly gains: readonly number[];
}

/** An episode of the training distribution. @param actor plays it; the rule does when it is left out */
function playLessons(trace: number, seed: number, actor: TrainedActor | undefined) {
  const { task, profile } = llmserve.drawTrainingEpisode(trace);
  const { hold, horizon } = ROLLOUTS;
  const draws = new RandomStream(seed, 'lessons', trace);
  const requests = llmserve.drawRequests(task, trace);
  const episode = new ServeEpisode(task, trace, { requests, profile });
  const imagined = new ServeEpisode(task, trace, { requests, profile });
  const onlooker = new Onlooker(task, profile);
  const lessons: Lesson[] = [];
  let held = 0;
  let heldTier = 0;
  while (!episode.done) {
    const advice = onlooker.see(windowOf(episode));
    let tier = actor ? onlooker.chosen(actor, advice) : advice.tier;
    if (held > 0) {
      held--;
      tier = heldTier;
    } else if (draws.uniform() < ROLLOUTS.held) {
      held = hold - 1;
      tier = heldTier = draws.integer(0, TIERS.length - 1);
    }
    const isTried = draws.uniform() < ROLLOUTS.tried;
    if (isTried && episode.window > 0 && episode.window + horizon <= task.windows) {
      const start = episode.snapshot();
      const returns = TIERS.map((_, other) => {
        imagined.restore(start);
        const advisor = onlooker.advisor.fork();
        let sum = imagined.step(advice.at(other));
        for (let window = 1; window < horizon; window++) {
          const next = advisor.advise(windowOf(imagined));
          sum += imagined.step(other !== advice.tier && window < hold ? next.at(other) : next.action);
        }
        const { drain } = advisor.advise(windowOf(imagined));
        return sum - ROLLOUTS.backlog * Math.min(horizon, drain);
      });
      const gains = returns.map((sum) => sum - returns[advice.tier]!);
      lessons.push({ features: onlooker.features.slice(), advised: advice.tier, gains });
    }
    episode.step(advice.at(tier));
  }
  return { lessons, return: episode.totals.reward };
}

/** Networks that differ in their first weights and in the order of the lessons, side by side in one: the mean of their values. */
function learnValues(lessons: readonly Lesson[], seed: number): ActorWeights {
  const { members: count, margin: keepBonus } = ROLLOUTS;
  const moments = new RunningNormalizer(FEATURES.length);
  for (const { features } of lessons) moments.observe(features, 0);
  const members = Array.from({ length: count }, (_, m) => learnMember(lessons, moments, count * seed + m));
  const own = members[0]!.shape;
  const shape = { ...own, hidden: own.hidden.map((units) => count * units) };
  const parameters = new Float32Array(parameterCount(actorLayerSizes(shape)));
  const layers = actorLayers(shape, parameters);
  for (const [m, member] of members.entries()) {
    for (const [l, of] of actorLayers(own, member.parameters).entries()) {
      const { inputs, outputs } = of;
      const { weights, bias, outputs: width } = layers[l]!;
      const isLast = l === layers.length - 1;
      for (let j = 0; j < outputs; j++) {
        const column = isLast ? j : m * outputs + j;
        const share = isLast ? count : 1;
        bias[column] = bias[column]! + of.bias[j]! / share;
        for (let i = 0; i < inputs; i++) {
          // All members see the same inputs.
          const at = (l === 0 ? i : m * inputs + i) * width + column;
          weights[at] = weights[at]! + of.weights[i * outputs + j]! / share;
        }
      }
    }
  }
  return { shape, keepBonus, moments: moments.moments, parameters };
}

/** Fits the differences between the values of the precisions to the gains. */
function learnMember(lessons: readonly Lesson[], moments: RunningNormalizer, seed: number) {
  const { minibatches, passes, minibatchSize, learningRate, weightDecay, mostGain, hidden } = ROLLOUTS;
  const kernels = simdKernels();
  const shape = { observationSize: FEATURES.length, headSizes: [TIERS.length], hidden: [hidden, hidden] };
  const network = new ActorCritic(kernels, shape, minibatchSize);
  network.initialize(new RandomStream(seed, 'weights'));
  const { actor } = network;
  const scale = moments.scale();
  const batch = kernels.allocate(minibatchSize * FEATURES.length);
  const random = new RandomStream(seed, 'minibatches');
  const order = Int32Array.from(lessons.keys());
  const parameters = network.adam.parameters.subarray(0, network.actorParameterCount);
  const epochs = Math.min(passes, Math.ceil(minibatches / Math.ceil(lessons.length / minibatchSize)));
  for (let epoch = 0; epoch < epochs; epoch++) {
    const rate = learningRate * (1 - epoch / epochs);
    shuffle(order, random);
    for (let start = 0; start < lessons.length; start += minibatchSize) {
      const rows = Math.min(minibatchSize, lessons.length - start);
      for (let row = 0; row < rows; row++) {
        normalizeRow(lessons[order[start + row]!]!.features, 0, scale, batch, row);
      }
      const values = actor.forward(batch, rows);
      const { outputGradients } = actor;
      outputGradients.fill(0);
      for (let row = 0; row < rows; row++) {
        const { advised, gains } = lessons[order[start + row]!]!;
        const at = row * TIERS.length;
        for (const [tier, gain] of gains.entries()) {
          if (tier === advised) continue;
          const wanted = Math.max(-mostGain, Math.min(mostGain, gain));
          const error = values[at + tier]! - values[at + advised]! - wanted;
          // Of half the square of the error, and beyond 1 of the error.
          const slope = (0.5 * Math.max(-1, Math.min(1, error))) / rows;
          outputGradients[at + tier] = outputGradients[at + tier]! + slope;
          outputGradients[at + advised] = outputGradients[at + advised]! - slope;
        }
      }
      actor.backward(rows);
      network.descend(rate, MAX_GRAD_NORM);
      for (let i = 0; i < parameters.length; i++) parameters[i] = parameters[i]! * (1 - rate * weightDecay);
    }
  }
  return { shape, parameters: Float32Array.from(parameters) };
}

/** Learns on the training distribution, in rounds. Deterministic. `steps` are the windows of episodes, rollouts not counted. */
export async function improvePrecisions({ steps, seed, signal, onGeneration }: SearchRun) {
  const { windows } = PRECISION_LEARNER.environment.tasks.find(ANY_SERVER)!;
  const episodes = Math.ceil(steps / windows / ROLLOUTS.rounds);
  const lessons: Lesson[] = [];
  let learned: (SearchGeneration & { readonly weights: ActorWeights }) | undefined;
  for (let round = 0; round < ROLLOUTS.rounds && !(learned && signal?.aborted); round++) {
    const actor = learned && new TrainedActor(learned.weights);
    const returns = trainingTraces(seed, episodes, round * episodes).map((trace) => {
      const played = playLessons(trace, seed, actor);
      lessons.push(...played.lessons);
      return played.return;
    });
    const figures = { steps: (round + 1) * episodes * windows, meanReturn: mean(returns) };
    learned = { ...figures, weights: learnValues(lessons, seed) };
    onGeneration?.(figures);
    // Learning blocks the thread: let signals be heard between rounds.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return learned!;
}

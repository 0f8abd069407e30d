import azureCode2023 from './azure-code-2023.json' with { type: 'json' };
import azureConversation2023 from './azure-conversation-2023.json' with { type: 'json' };
import mooncakeConversation from './mooncake-conversation.json' with { type: 'json' };
import ragPulse from './ragpulse.json' with { type: 'json' };

/**
 * A workload fitted to a trace: draws as much traffic as is asked for. Arrivals are a Poisson process whose rate moves:
 * slowly, through levels whose distribution is tabled and which remember where they were, and from second to second by
 * a factor that is gamma distributed with mean 1. Lengths follow tabled quantiles and are correlated through normal
 * scores. Made by `fitWorkload`.
 */
export interface FittedWorkload {
  /** Value of `reset({traffic})`. */
  readonly id: string;
  readonly title: string;
  /** Origin of the trace, with its licence. */
  readonly source: string;
  /** Requests and seconds of the trace that it was fitted to. */
  readonly requests: number;
  readonly seconds: number;
  readonly arrivals: {
    /** Mean rate. */
    readonly perSecond: number;
    /** A level lasts this long, s. */
    readonly levelSeconds: number;
    /** Rate of a level over the mean rate: values at evenly spaced probabilities, 0 and 1 among them. Their mean is 1. */
    readonly levels: readonly number[];
    /** Parts of a level's normal score that fade independently; the shares sum to 1. */
    readonly memory: readonly { readonly share: number; readonly seconds: number }[];
    /** Shape of the gamma factor of each second, mean 1; `null` when the rate stays within a level. */
    readonly secondShape: number | null;
  };
  readonly lengths: {
    /** Probabilities of the quantiles below, ascending from 0 to 1. */
    readonly probabilities: readonly number[];
    /** Tokens. */
    readonly input: readonly number[];
    readonly output: readonly number[];
    /** Of the normal scores of input and output. */
    readonly correlation: number;
  };
  /** Prefixes that prompts share, where the trace has them. */
  readonly prefixes: PrefixSharing | null;
  readonly fit: WorkloadFit;
}

/** Prompts that begin as others did. */
export interface PrefixSharing {
  /** Tokens in a block of the trace. */
  readonly blockTokens: number;
  /**
   * Share of the requests that continue an earlier prompt beyond what all have in common, by the length of their own:
   * each entry holds for prompts longer than the one before it says, up to `upToTokens`.
   */
  readonly continued: readonly { readonly upToTokens: number; readonly share: number }[];
  /** Tokens that every prompt begins with. */
  readonly commonTokens: number;
  /** Of those that continue: shared tokens over the prompt's, at evenly spaced probabilities from 0 to 1. */
  readonly sharedShare: readonly number[];
  /** Of those that continue: seconds since the prompt that is continued, at evenly spaced probabilities. */
  readonly gapSeconds: readonly number[];
  /** Share of all prompt tokens that an unbounded prefix cache would have held. */
  readonly cacheableShare: number;
}

/** Distances of the workload from its trace, Kolmogorov-Smirnov: the largest gap between two distributions. */
export interface WorkloadFit {
  /** Between the trace and a long draw from the model. */
  readonly ks: {
    readonly input: number;
    readonly output: number;
    /** Requests in a level's time. */
    readonly counts: number;
    /** Time between arrivals. */
    readonly gaps: number;
  };
  /** Between a model fitted to the first half of the trace and its second half, and between the halves themselves. */
  readonly heldOut: {
    readonly input: number;
    readonly output: number;
    readonly halvesInput: number;
    readonly halvesOutput: number;
  };
  /** Variance of the number of arrivals over its mean, at several scales: 1 for Poisson traffic. */
  readonly dispersion: readonly {
    readonly seconds: number;
    readonly trace: number;
    readonly model: number;
  }[];
}

/** Ids of the workloads that environments have. Tasks are drawn from this list: a longer one would draw others. */
export const WORKLOAD_IDS = ['azure-conversation-2023', 'azure-code-2023', 'mooncake-conversation'] as const;
export type WorkloadId = (typeof WORKLOAD_IDS)[number];

/** Ids of the workloads fitted to public traces. */
export const PUBLIC_WORKLOAD_IDS = [...WORKLOAD_IDS, 'ragpulse'] as const;
export type PublicWorkloadId = (typeof PUBLIC_WORKLOAD_IDS)[number];

const MODELS: Readonly<Record<PublicWorkloadId, FittedWorkload>> = {
  'azure-conversation-2023': azureConversation2023,
  'azure-code-2023': azureCode2023,
  'mooncake-conversation': mooncakeConversation,
  ragpulse: ragPulse,
};

/** The model of this id that environments have; `undefined` when there is none. */
export function findWorkload(id: string): FittedWorkload | undefined {
  return WORKLOAD_IDS.some((known) => known === id) ? MODELS[id as WorkloadId] : undefined;
}

export function publicWorkload(id: PublicWorkloadId): FittedWorkload {
  return MODELS[id];
}

import {
  DRAFTERS,
  type EngineProfile,
  type FrontEndOptions,
  type HostCheckpoints,
  type IterationLaw,
  KV_PRECISIONS,
  MAX_REQUEST_TOKENS,
  MOST_API_SERVERS,
  MOST_WATERMARK,
  type ParallelDivision,
  PROFILE_STATUSES,
  type ProfileFit,
  type SchedulerSettings,
  type SpeculationProfile,
  WEIGHT_PRECISIONS,
  type WeightPrecision,
  type WeightVariant,
} from '@servegym/simulator';
import { FieldReader } from './field-reader.ts';
import { ProfileError } from './profile-error.ts';

const NAME = /^[a-z0-9]+(?:[.-][a-z0-9]+)*$/;
/** No iteration, and no part of one, takes a minute: a larger figure is in the wrong unit. */
const MINUTE_US = 60e6;
const PERCENT = 1000;

/**
 * Reads an engine profile from its JSON text.
 *
 * @param source File name for the messages.
 * @throws {ProfileError} naming the first field that is missing, unknown, of another type or absurd.
 */
export function parseEngineProfile(text: string, source: string): EngineProfile {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof SyntaxError ? error.message : String(error);
    throw new ProfileError('PROFILE_SYNTAX', source, '', 'a profile in JSON', reason);
  }
  return checkEngineProfile(value, source);
}

/** As `parseEngineProfile`, from parsed JSON. */
export function checkEngineProfile(value: unknown, source: string): EngineProfile {
  const profile = new FieldReader(source, '', value);
  const requestOverheadJitter = profile.optionalNumber('requestOverheadJitter', 0, 1);
  const requestOverheadPerTokenUs = profile.optionalNumber('requestOverheadPerTokenUs', 0, 1e6);
  const frontEnd = profile.optional('frontEnd', readFrontEnd);
  const hostCheckpoints = profile.optional('hostCheckpoints', readHostCheckpoints);
  const result: EngineProfile = {
    name: profile.text('name', NAME, 'a name such as a100-40gb-llama-3-8b'),
    gpu: readGpu(profile.object('gpu')),
    ...(profile.keys.includes('parallel') && { parallel: readParallel(profile.object('parallel')) }),
    model: readModel(profile.object('model')),
    engine: readEngine(profile.object('engine')),
    status: profile.choice('status', PROFILE_STATUSES),
    source: profile.text('source'),
    fit: profile.nullable('fit', readFit),
    validity: readValidity(profile.object('validity')),
    memory: readMemory(profile.object('memory')),
    requestOverheadMs: profile.number('requestOverheadMs', 0, 10_000),
    ...(requestOverheadJitter !== undefined && { requestOverheadJitter }),
    ...(requestOverheadPerTokenUs !== undefined && { requestOverheadPerTokenUs }),
    ...(frontEnd !== undefined && { frontEnd }),
    reloadSeconds: profile.number('reloadSeconds', 0, 3600),
    ...(hostCheckpoints !== undefined && { hostCheckpoints }),
    weights: readWeights(profile.object('weights'), source),
    speculation: profile.nullable('speculation', readSpeculation),
    ...(profile.keys.includes('hostKv') && { hostKv: readHostKv(profile.object('hostKv')) }),
    transfer: readTransfer(profile.object('transfer')),
  };
  profile.end();
  const { data = 1, pipeline = 1 } = result.parallel ?? {};
  if (result.gpu.count % (data * pipeline) !== 0) {
    const expected = `a divisor of the ${result.gpu.count} GPUs as data times pipeline`;
    throw new ProfileError('PROFILE_FIELD', source, 'parallel', expected, `${data * pipeline}`);
  }
  return result;
}

function readHostCheckpoints(host: FieldReader): HostCheckpoints {
  const result = {
    linkGBps: host.number('linkGBps', 0.01, 10_000),
    wakeSeconds: host.number('wakeSeconds', 0, 3600),
  };
  host.end();
  return result;
}

function readFrontEnd(frontEnd: FieldReader): FrontEndOptions {
  const result = {
    processes: frontEnd.integer('processes', 1, MOST_API_SERVERS),
    perRequestMs: frontEnd.number('perRequestMs', 0, 10_000),
    perPromptTokenUs: frontEnd.number('perPromptTokenUs', 0, 1e6),
    perOutputTokenUs: frontEnd.number('perOutputTokenUs', 0, 1e6),
  };
  frontEnd.end();
  return result;
}

function readGpu(gpu: FieldReader): EngineProfile['gpu'] {
  const result = {
    name: gpu.text('name'),
    memoryGiB: gpu.number('memoryGiB', 1, 10_000),
    count: gpu.integer('count', 1, 1024),
    usdPerHour: gpu.number('usdPerHour', 0, 10_000),
  };
  gpu.end();
  return result;
}

function readParallel(parallel: FieldReader): ParallelDivision {
  const sizes = (['data', 'expert', 'pipeline'] as const).map(
    (name) => [name, parallel.optionalInteger(name, 1, 1024)] as const,
  );
  parallel.end();
  return Object.fromEntries(sizes.filter(([, size]) => size !== undefined));
}

function readModel(model: FieldReader): EngineProfile['model'] {
  const result = {
    name: model.text('name'),
    kvBytesPerToken: model.integer('kvBytesPerToken', 1, 2 ** 30),
    ...(model.keys.includes('kvCache') && { kvCache: model.choice('kvCache', KV_PRECISIONS) }),
  };
  model.end();
  return result;
}

function readEngine(engine: FieldReader): EngineProfile['engine'] {
  const scheduler: SchedulerSettings = {
    asyncScheduling: engine.optionalBoolean('asyncScheduling'),
    drafter: engine.optionalChoice('drafter', DRAFTERS),
    speculationDepthPerBatchSize: engine.optionalBatchDepths('speculationDepthPerBatchSize'),
    longPrefillTokenThreshold: engine.optionalInteger('longPrefillTokenThreshold', 0, MAX_REQUEST_TOKENS),
    longPrefillTokenThresholdAdaptive: engine.optionalBoolean('longPrefillTokenThresholdAdaptive'),
    watermark: engine.optionalNumber('watermark', 0, MOST_WATERMARK),
    wholePromptFits: engine.optionalBoolean('wholePromptFits'),
  };
  const set = Object.entries(scheduler).filter(([, value]) => value !== undefined);
  const result = {
    name: engine.text('name'),
    version: engine.text('version'),
    ...(Object.fromEntries(set) as SchedulerSettings),
  };
  engine.end();
  return result;
}

function readFit(fit: FieldReader): ProfileFit {
  const result = {
    rows: fit.integer('rows', 1, 1e9),
    meanErrorPercent: fit.number('meanErrorPercent', 0, PERCENT),
    worstErrorPercent: fit.number('worstErrorPercent', 0, PERCENT),
    heldOutMeanErrorPercent: fit.number('heldOutMeanErrorPercent', 0, PERCENT),
    heldOutWorstErrorPercent: fit.number('heldOutWorstErrorPercent', 0, PERCENT),
    command: fit.text('command'),
  };
  fit.end();
  return result;
}

function readValidity(validity: FieldReader): EngineProfile['validity'] {
  const result = { batch: validity.range('batch'), contextTokens: validity.range('contextTokens') };
  validity.end();
  return result;
}

function readMemory(memory: FieldReader): EngineProfile['memory'] {
  const result = {
    utilization: memory.number('utilization', 0.01, 1),
    overheadGiB: memory.number('overheadGiB', 0, 1000),
    blockTokens: memory.powerOfTwo('blockTokens', 256),
  };
  memory.end();
  return result;
}

function readWeights(weights: FieldReader, source: string): EngineProfile['weights'] {
  const result: Partial<Record<WeightPrecision, WeightVariant>> = {};
  for (const precision of WEIGHT_PRECISIONS) {
    if (weights.keys.includes(precision)) result[precision] = readVariant(weights.object(precision));
  }
  weights.end();
  if (Object.keys(result).length === 0) {
    throw new ProfileError(
      'PROFILE_FIELD',
      source,
      'weights',
      `at least one of ${WEIGHT_PRECISIONS.join(', ')}`,
      '{}',
    );
  }
  return result;
}

function readVariant(variant: FieldReader): WeightVariant {
  const result = {
    weightGiB: variant.number('weightGiB', 0.001, 10_000),
    law: readLaw(variant.object('law')),
    status: variant.choice('status', PROFILE_STATUSES),
    source: variant.text('source'),
    quality: variant.number('quality', 0, 1),
  };
  variant.end();
  return result;
}

function readLaw(law: FieldReader): IterationLaw {
  const many = law.optional('manySequences', (reader) => {
    const read = {
      above: reader.integer('above', 1, 1_000_000),
      perContextTokenNs: reader.number('perContextTokenNs', 0, MINUTE_US),
    };
    reader.end();
    return read;
  });
  const launchBound = law.optionalBoolean('launchBound');
  const experts = law.optional('experts', (reader) => {
    const count = reader.integer('count', 1, 100_000);
    const read = {
      count,
      perToken: reader.integer('perToken', 1, count),
      readUs: reader.number('readUs', 0, MINUTE_US),
    };
    reader.end();
    return read;
  });
  const tokenFactors = law.optionalFactors('tokenFactors');
  const sequenceFactors = law.optionalFactors('sequenceFactors');
  const prefillLaunchUs = law.optionalNumber('prefillLaunchUs', 0, MINUTE_US);
  const besidePrefill = law.optionalNumber('perContextTokenBesidePrefillNs', 0, MINUTE_US);
  const result = {
    baseUs: law.number('baseUs', 0, MINUTE_US),
    ...(launchBound !== undefined && { launchBound }),
    weightReadUs: law.number('weightReadUs', 0.001, MINUTE_US),
    ...(experts && { experts }),
    perTokenUs: law.number('perTokenUs', 0.000_001, MINUTE_US),
    ...(tokenFactors && { tokenFactors }),
    perDecodeSequenceUs: law.number('perDecodeSequenceUs', 0, MINUTE_US),
    perContextTokenNs: law.number('perContextTokenNs', 0, MINUTE_US),
    ...(many && { manySequences: many }),
    ...(sequenceFactors && { sequenceFactors }),
    ...(besidePrefill !== undefined && { perContextTokenBesidePrefillNs: besidePrefill }),
    ...(prefillLaunchUs !== undefined && { prefillLaunchUs }),
    perPrefillAttentionNs: law.number('perPrefillAttentionNs', 0, MINUTE_US),
  };
  law.end();
  return result;
}

function readSpeculation(speculation: FieldReader): SpeculationProfile {
  const tables = speculation.object('survival');
  const result = {
    method: speculation.text('method'),
    draftGiB: speculation.number('draftGiB', 0, 1000),
    draftBaseUs: speculation.number('draftBaseUs', 0, MINUTE_US),
    draftPerTokenUs: speculation.number('draftPerTokenUs', 0, MINUTE_US),
    draftPerContextTokenNs: speculation.number('draftPerContextTokenNs', 0, MINUTE_US),
    survival: Object.fromEntries(tables.keys.map((kind) => [kind, tables.survival(kind)])),
    source: speculation.text('source'),
  };
  speculation.end();
  return result;
}

function readHostKv(hostKv: FieldReader): EngineProfile['hostKv'] {
  const result = {
    sizeGiB: hostKv.number('sizeGiB', 0, 1e6),
    gigabytesPerSecond: hostKv.number('gigabytesPerSecond', 0.001, 1e6),
  };
  hostKv.end();
  return result;
}

function readTransfer(transfer: FieldReader): EngineProfile['transfer'] {
  const result = {
    gigabytesPerSecond: transfer.number('gigabytesPerSecond', 0.001, 1e6),
    setupMs: transfer.number('setupMs', 0, 60_000),
  };
  transfer.end();
  return result;
}

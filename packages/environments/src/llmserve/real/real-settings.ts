import { EnvironmentError } from '@servegym/openenv/definition';
import { maskUrls } from '@servegym/openenv/mask-urls';

/**
 * Kind of server. `openai`: the API as OpenAI serves it, or anybody who does the same. `vllm`: also takes `ignore_eos`,
 * `min_tokens` and `priority`, and tells its state at `/metrics`. `servegym`: a `servegym endpoint`, whose knobs can be
 * changed while it serves.
 */
const REAL_PROVIDERS = ['openai', 'vllm', 'servegym'] as const;
type RealProvider = (typeof REAL_PROVIDERS)[number];

/** Numbers among the settings: variable, usual value, least and most. Those whose least is whole are whole. */
const NUMBERS = {
  /** Most requests that a step sends; of more, an even selection is sent. */
  maxRequestsPerStep: ['LLMSERVE_REAL_MAX_REQUESTS_PER_STEP', 8, 1, 10_000],
  /** Longer prompts and outputs of the task are cut to these, tokens. */
  maxPromptTokens: ['LLMSERVE_REAL_MAX_PROMPT_TOKENS', 512, 1, 1_000_000],
  maxCompletionTokens: ['LLMSERVE_REAL_MAX_COMPLETION_TOKENS', 64, 1, 1_000_000],
  /** From a request's first attempt to its last token, s of wall time. */
  timeoutSeconds: ['LLMSERVE_REAL_TIMEOUT_S', 60, 0.1, 3600],
  /** Attempts after the first, for 408, 409, 429, 5xx and lost connections. */
  retries: ['LLMSERVE_REAL_RETRIES', 2, 0, 10],
  /** Seconds of the task that pass in one of wall time; for servers whose time runs faster. */
  timeScale: ['LLMSERVE_REAL_TIME_SCALE', 1, 0.01, 1000],
} as const;

/** Settings of real mode. */
export type RealSettings = Readonly<NonNullable<ReturnType<typeof readRealSettings>>>;

export const OPENAI_URL = 'https://api.openai.com/v1';
const OPENAI_MODEL = 'gpt-4.1-mini';

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * The settings of real mode from variables `LLMSERVE_REAL_...`; `null` when `LLMSERVE_MODE` is `sim` or unset.
 * @throws EnvironmentError `REAL_SETTINGS` naming the variable that makes no sense
 */
export function readRealSettings(variables: Variables) {
  const mode = variables.LLMSERVE_MODE ?? '';
  if (mode === '' || mode === 'sim') return null;
  if (mode !== 'real') throw invalid('LLMSERVE_MODE', '`sim` or `real`', mode);
  const provider = (variables.LLMSERVE_REAL_PROVIDER ?? 'openai') as RealProvider;
  if (!REAL_PROVIDERS.includes(provider)) {
    throw invalid('LLMSERVE_REAL_PROVIDER', `one of ${REAL_PROVIDERS.join(', ')}`, provider);
  }
  const baseUrl =
    variables.LLMSERVE_REAL_BASE_URL ||
    variables.OPENAI_BASE_URL ||
    (provider === 'openai' ? OPENAI_URL : '');
  if (/[@?#]/.test(baseUrl)) {
    throw new EnvironmentError(
      'REAL_SETTINGS',
      'Expected LLMSERVE_REAL_BASE_URL to be without user and password, query and fragment. Put the key into OPENAI_API_KEY',
    );
  }
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) {
    const example = provider === 'servegym' ? 'http://localhost:8000/v1' : 'http://my-server:8000/v1';
    throw invalid('LLMSERVE_REAL_BASE_URL', `an address such as ${example}`, baseUrl);
  }
  const apiKey = variables.OPENAI_API_KEY ?? '';
  if (apiKey === '' && baseUrl === OPENAI_URL) {
    throw new EnvironmentError(
      'REAL_SETTINGS',
      'Expected OPENAI_API_KEY to hold a key of the OpenAI API, which real mode asks; it is not set. Set it, or LLMSERVE_REAL_BASE_URL to a server of your own',
    );
  }
  const isOpenAi = baseUrl === OPENAI_URL;
  return {
    provider,
    /** Up to and with `/v1`, without a slash at the end. */
    baseUrl: baseUrl.replace(/\/+$/, ''),
    // The client wants one; servers without keys do not look at it.
    apiKey: apiKey === '' ? 'none' : apiKey,
    /** `null`: the first that the server lists. */
    model: variables.LLMSERVE_REAL_MODEL || (isOpenAi ? OPENAI_MODEL : null),
    ...numbers(variables),
    /** Prices of a million tokens, USD; `null` when nobody has said. */
    inputUsdPerMillion: price(variables, 'LLMSERVE_REAL_INPUT_USD_PER_1M'),
    outputUsdPerMillion: price(variables, 'LLMSERVE_REAL_OUTPUT_USD_PER_1M'),
  };
}

function numbers(variables: Variables): Record<keyof typeof NUMBERS, number> {
  const read = Object.entries(NUMBERS).map(([setting, [name, usual, least, most]]) => {
    const value = number(variables, name, usual, least, most);
    if (Number.isInteger(value) || !Number.isInteger(least)) return [setting, value];
    throw invalid(name, `a whole number from ${least} to ${most}`, variables[name]);
  });
  return Object.fromEntries(read);
}

function number(variables: Variables, name: string, usual: number, least: number, most: number): number {
  const text = variables[name];
  if (text === undefined || text === '') return usual;
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (value >= least && value <= most) return value;
  throw invalid(name, `a number from ${least} to ${most}`, text);
}

function price(variables: Variables, name: string): number | null {
  return variables[name] === undefined || variables[name] === ''
    ? null
    : number(variables, name, 0, 0, 1_000_000);
}

function invalid(name: string, expected: string, got: string | undefined): EnvironmentError {
  return new EnvironmentError(
    'REAL_SETTINGS',
    `Expected ${name} to be ${expected}, got \`${maskUrls(got ?? '')}\``,
  );
}

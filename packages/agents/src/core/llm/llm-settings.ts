import { AgentError } from '../../error-catalogue.ts';

/** Which model is asked, and where. */
export interface LlmSettings {
  /** Up to and with `/v1`; any server of the OpenAI Chat Completions API. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly model: string;
  /** Longest wait for an answer, attempts included, s. Default 60. */
  readonly timeoutSeconds?: number;
  /** Attempts after the first, for 408, 409, 429, 5xx and lost connections. Default 3. */
  readonly retries?: number;
  /** Prices of a million tokens, USD. Default: not known, so that no cost is told. */
  readonly inputUsdPerMillion?: number;
  readonly outputUsdPerMillion?: number;
}

export const OPENAI_URL = 'https://api.openai.com/v1';
export const DEFAULT_MODEL = 'gpt-4.1-mini';

type Variables = Readonly<Record<string, string | undefined>>;

/** Whether the variables name somebody to ask: a key, or a server of one's own. */
export function hasLlmSettings(variables: Variables): boolean {
  return Boolean(variables.OPENAI_API_KEY || variables.OPENAI_BASE_URL || variables.API_BASE_URL);
}

/**
 * Settings from `OPENAI_API_KEY` (or `HF_TOKEN`), `OPENAI_BASE_URL` (or `API_BASE_URL`) and `MODEL_NAME`, where they are
 * not given.
 * @throws AgentError `LLM_SETTINGS` when OpenAI would be asked without a key, or the address is none
 */
export function llmSettings(
  variables: Variables,
  given: { readonly baseUrl?: string; readonly model?: string } = {},
): LlmSettings {
  const baseUrl = given.baseUrl || variables.OPENAI_BASE_URL || variables.API_BASE_URL || OPENAI_URL;
  if (!/^https?:\/\//.test(baseUrl) || !URL.canParse(baseUrl)) {
    throw new AgentError('LLM_SETTINGS', {
      problem: `Expected the address of the model's API to begin with http:// or https://, got \`${baseUrl}\``,
    });
  }
  const { username, password } = new URL(baseUrl);
  if (username !== '' || password !== '') {
    throw new AgentError('LLM_SETTINGS', {
      problem:
        'Expected the address of the model’s API to be without user and password. Put the key into OPENAI_API_KEY',
    });
  }
  const apiKey = variables.OPENAI_API_KEY || variables.HF_TOKEN || '';
  if (apiKey === '' && baseUrl === OPENAI_URL) {
    throw new AgentError('LLM_SETTINGS', {
      problem:
        'Expected OPENAI_API_KEY to hold a key of the OpenAI API, and it is not set. Set it, or name another server with --api-base-url or OPENAI_BASE_URL',
    });
  }
  return {
    baseUrl: baseUrl.replace(/\/+$/, ''),
    // The client wants one; servers without keys do not look at it.
    apiKey: apiKey === '' ? 'none' : apiKey,
    model: given.model || variables.MODEL_NAME || DEFAULT_MODEL,
  };
}

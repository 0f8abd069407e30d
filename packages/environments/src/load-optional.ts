import { EnvironmentError } from '@servegym/openenv/definition';

/**
 * Loads a module that needs optional packages.
 * @param use start of the sentence that names them, for instance `Queues need`
 * @param failure makes the error of that sentence
 */
export function loadOptional<Module>(
  load: () => Promise<Module>,
  use: string,
  packages: readonly string[],
  failure: (message: string, options: ErrorOptions) => Error,
): Promise<Module> {
  return load().catch((cause) => {
    if (cause.code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    const [s, are, them] = packages.length === 1 ? ['', 'is', 'it'] : ['s', 'are', 'them'];
    throw failure(
      `${use} the package${s} ${packages.join(' and ')}, which ${are} not installed. Install ${them} beside servegym: npm install ${packages.join(' ')}`,
      { cause },
    );
  });
}

/** Server of the OpenAI API, and how long and how often it is asked. */
export interface OpenAiServer {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Attempts after the first. */
  readonly retries: number;
  readonly timeoutSeconds: number;
}

/**
 * The official client, an `OpenAI`, which callers name: packages that depend on this one may lack its types. It takes
 * longer to load than all the rest: only what asks a server does.
 * @param use start of the sentence that says it is missing, with the code of that error
 */
export async function openAiClient(
  { baseUrl, apiKey, retries, timeoutSeconds }: OpenAiServer,
  use: string,
  code: string,
): Promise<object> {
  const { default: Client } = await loadOptional(
    () => import('openai'),
    use,
    ['openai'],
    (message) => new EnvironmentError(code, message),
  );
  return new Client({
    baseURL: baseUrl,
    apiKey,
    maxRetries: retries,
    timeout: timeoutSeconds * 1000,
    // A server that was named must not send this one to addresses inside its network.
    fetchOptions: { redirect: 'manual' },
    // Errors are outcomes; the client would also write them to the console.
    logLevel: 'off',
  });
}

import { keepToken, keptToken } from '../state/kept.ts';
import type { Fields } from './wire.ts';

/** `unreachable`: no answer came. `refused`: the server answered with an error. `unreadable`: the answer is not what the API promises. */
type ApiErrorKind = 'unreachable' | 'refused' | 'unreadable';

/** Codes of work that the server broke off because it took too much time or memory: the same request meets the same end. */
const TOO_MUCH_WORK = ['WORK_TIMEOUT', 'WORK_MEMORY'];

/** A request to the server that did not work out, in words for the person at the page. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly kind: ApiErrorKind;
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /** For instance `RATE_LIMITED`, where the server names one. */
  readonly code: string | undefined;
  /** Time after which the server wants to be asked again; 0 where it does not say. */
  readonly retryAfterMs: number;
  constructor(kind: ApiErrorKind, status: number, message: string, code?: string, retryAfterMs = 0) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }

  /** The server broke the request off because it took too much time or memory. */
  get isTooMuchWork(): boolean {
    return this.code !== undefined && TOO_MUCH_WORK.includes(this.code);
  }

  /** The server wants a token that it has not got. */
  get isUnauthorized(): boolean {
    return this.status === 401;
  }

  /** The server has no such thing, or has it no more. */
  get isMissing(): boolean {
    return this.status === 404 || this.status === 410;
  }

  /** The same request may succeed later: the connection, a gateway, a rate limit or the capacity stood in its way. */
  get isTemporary(): boolean {
    if (this.isTooMuchWork) return false;
    return this.kind === 'unreachable' || [429, 502, 503, 504].includes(this.status);
  }
}

/** The error of a request that the server answered with `status` and the JSON `answer`. */
function refusal(status: number, answer: unknown, retryAfterMs?: number): ApiError {
  const message = errorText(answer) ?? `The server answered ${status}.`;
  return new ApiError('refused', status, message, errorCode(answer), retryAfterMs);
}

/** The sentence inside an error answer: plain `detail`, a list of validation errors, or `{error: {message}}`. */
function errorText(body: unknown): string | undefined {
  if (typeof body === 'string') return body.length > 0 && body.length <= 300 ? body : undefined;
  if (typeof body !== 'object' || body === null) return undefined;
  const { detail, error, message } = body as Fields;
  if (Array.isArray(detail)) return detail.map(validationText).join('; ');
  return errorText(detail) ?? errorText(error) ?? (typeof message === 'string' ? message : undefined);
}

/** The code beside the sentence, as in `{detail, code}` or `{error: {code}}`. */
function errorCode(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null) return undefined;
  const { code, detail, error } = body as Fields;
  return typeof code === 'string' ? code : (errorCode(detail) ?? errorCode(error));
}

function validationText(entry: unknown): string {
  const { loc, msg } = (entry ?? {}) as Fields;
  const where = Array.isArray(loc) ? loc.filter((part) => part !== 'body').join('.') : '';
  return where ? `${where}: ${String(msg)}` : String(msg);
}

const ANSWER_WITHIN_MS = 20_000;

/** Requests to the server whose API stands under `root`, which ends in a slash. Every method throws `ApiError`. */
export function createTransport(root: URL) {
  let token = keptToken();

  async function open(path: string, request: string | undefined, within: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {};
    if (request !== undefined) headers['content-type'] = 'application/json';
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const method = request === undefined ? 'GET' : 'POST';
    return fetch(new URL(path, root), { method, headers, body: request, signal: within });
  }

  async function ask(path: string, body?: Fields, withinMs = ANSWER_WITHIN_MS): Promise<Fields> {
    let response: Response;
    let answer: unknown;
    try {
      response = await open(path, body && JSON.stringify(body), AbortSignal.timeout(withinMs));
      answer = parse(await response.text());
    } catch (cause) {
      throw unreachable(cause);
    }
    if (!response.ok) throw refusal(response.status, answer, retryAfterMsOf(response));
    if (typeof answer !== 'object' || answer === null) throw unreadable(path);
    return answer as Fields;
  }

  return {
    /** Address of the server, without a slash at its end. */
    url: root.href.replace(/\/$/, ''),
    /** The token that requests carry from now on, in this tab. */
    authorize(given: string): void {
      token = given;
      keepToken(given);
    },
    /** Asks for JSON and answers with it; a body is posted. */
    ask,
    /** Posts a request whose answer comes in parts. */
    async stream(path: string, body: Fields, within: AbortSignal): Promise<ReadableStream<Uint8Array>> {
      const response = await open(path, JSON.stringify(body), within).catch((cause) => {
        throw unreachable(cause);
      });
      if (response.ok) return response.body!;
      throw refusal(response.status, parse(await response.text()), retryAfterMsOf(response));
    },
  };
}

function retryAfterMsOf({ headers }: Response): number | undefined {
  return Number(headers.get('retry-after') ?? 0) * 1000 || undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unreachable(cause: unknown): ApiError {
  const isLate = cause instanceof DOMException && cause.name === 'TimeoutError';
  const message = isLate ? 'The server took too long to answer.' : 'The server does not answer.';
  return new ApiError('unreachable', 0, message);
}

export function unreadable(path: string): ApiError {
  return new ApiError(
    'unreadable',
    200,
    `The answer to /${path} is not what this page expects. Is it a ServeGym server of this version?`,
  );
}

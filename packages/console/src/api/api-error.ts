import type { Fields } from './wire.ts';

/** `unreachable`: no answer came. `refused`: the server answered with an error. `unreadable`: the answer is not what the API promises. */
export type ApiErrorKind = 'unreachable' | 'refused' | 'unreadable';

/** A request to the server that did not work out, in words for the person at the page. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly kind: ApiErrorKind;
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  constructor(kind: ApiErrorKind, status: number, message: string) {
    super(message);
    this.kind = kind;
    this.status = status;
  }

  /** Whether the server wants a token that it has not got. */
  get isUnauthorized(): boolean {
    return this.status === 401;
  }

  /** Whether the same request may work out later: the connection, a gateway, a rate limit or the capacity stood in its way. */
  get isTemporary(): boolean {
    return this.kind === 'unreachable' || [429, 502, 503, 504].includes(this.status);
  }
}

/** The sentence inside an error answer: plain `detail`, a list of validation errors, or `{error: {message}}`. */
export function errorText(body: unknown): string | undefined {
  if (typeof body === 'string') return body.length > 0 && body.length <= 300 ? body : undefined;
  if (typeof body !== 'object' || body === null) return undefined;
  const { detail, error, message } = body as Fields;
  if (Array.isArray(detail)) return detail.map(validationText).join('; ');
  return errorText(detail) ?? errorText(error) ?? (typeof message === 'string' ? message : undefined);
}

function validationText(entry: unknown): string {
  const { loc, msg } = (entry ?? {}) as Fields;
  const where = Array.isArray(loc) ? loc.filter((part) => part !== 'body').join('.') : '';
  return where ? `${where}: ${String(msg)}` : String(msg);
}

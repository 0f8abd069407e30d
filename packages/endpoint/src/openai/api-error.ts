import type { ContentfulStatusCode } from 'hono/utils/http-status';

/** An answer to a request that cannot be served, in the shape of the OpenAI API. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: ContentfulStatusCode;
  /** Stable. */
  readonly code: string;
  /** The field at fault. */
  readonly param: string | null;

  constructor(status: ContentfulStatusCode, code: string, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
  }

  get body(): {
    readonly error: {
      readonly message: string;
      readonly type: string;
      readonly param: string | null;
      readonly code: string;
    };
  } {
    const { message, param, code } = this;
    return { error: { message, type: typeOf(this.status), param, code } };
  }
}

function typeOf(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 404) return 'not_found_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}

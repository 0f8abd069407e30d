import { ApiError } from './api-error.ts';

/** Waits for code of the page that is fetched when it is needed. @throws ApiError */
export async function fetchPart<T>(part: Promise<T>): Promise<T> {
  try {
    return await part;
  } catch {
    throw new ApiError('unreachable', 0, 'Part of the page could not be fetched.');
  }
}

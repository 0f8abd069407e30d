/** `scheme://user:password@`; a password that holds a `/` counts too, a port does not. */
const USER = /\b([a-z][a-z\d+.-]*:\/\/)(?:[^\s/?#]*@|[^\s/?#:[]*:(?!\d*(?:[/?#\s]|$))\S*@)/gi;
const SECRET =
  /([?&](?:(?:sentinel_)?password|passwd|secret|token|access_token|auth|key|api_key|apikey)=)[^\s&#"'`)]+/gi;

/** Replaces users, passwords and keys in all URLs of a text by `***`. */
export function maskUrls(text: string): string {
  if (!text.includes('://')) return text;
  return text.replace(USER, '$1***@').replace(SECRET, '$1***');
}

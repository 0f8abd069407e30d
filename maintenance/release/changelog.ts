const UNRELEASED = '## [Unreleased]\n';

/**
 * The text of CHANGELOG.md with a section for a new version, which holds the lines of the changesets and all that
 * stood under "Unreleased". Throws when there is nothing to release.
 *
 * @param date as `2026-11-22`
 */
export function releasedChangelog(
  text: string,
  version: string,
  date: string,
  changes: readonly string[],
): string {
  const [before, after, ...more] = text.split(UNRELEASED) as [string, string?, ...string[]];
  if (after === undefined || more.length > 0)
    throw new Error(
      `Expected one line \`${UNRELEASED.trim()}\` in CHANGELOG.md, got ${more.length === 0 ? 0 : more.length + 1}`,
    );
  if (text.includes(`## [${version}]`)) throw new Error(`CHANGELOG.md has a section for ${version} already`);
  const lines = changes.map((change) => `- ${change.trim().replaceAll('\n', '\n  ')}\n`).join('');
  return `${before}${UNRELEASED}\n## [${version}] - ${date}\n${lines && `\n${lines}`}${after}`;
}

/** The text of a changeset, behind the packages and sizes of its front matter. */
export function changesetText(source: string): string {
  const text = /^---\n.*?\n---\n(.*)$/s.exec(source)?.[1]?.trim();
  if (text === undefined)
    throw new Error('Expected a changeset to begin with its packages between two lines `---`');
  return text;
}

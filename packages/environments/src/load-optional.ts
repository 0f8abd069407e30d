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

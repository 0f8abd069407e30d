import { referencePages } from '../.vitepress/pages.ts';

/** Reference pages, which `npm run docs:reference` generates. */
export default {
  paths: () =>
    referencePages().map(({ path, markdown }) => ({
      params: { page: path.slice('reference/'.length) },
      content: markdown,
    })),
};

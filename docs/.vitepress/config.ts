import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { writeForLanguageModels } from './llms.ts';
import { docs, generatedServers, linkRepository, REPOSITORY, referencePages, sections } from './pages.ts';

const title = 'ServeGym';
const description =
  'Environments in which an agent learns to run an LLM inference server, and the simulator under them.';
/** Path of the site on its host, for instance `/servegym/` on GitHub Pages. */
const base = process.env.SERVEGYM_DOCS_BASE ?? '/';
/** Address of the host, for links that have to be whole. */
const origin = process.env.SERVEGYM_DOCS_ORIGIN ?? '';
/** The icon of the console. */
const icon = readFileSync(join(docs, '../packages/console/src/styles/icon.svg'), 'base64');
const found = sections();
const generatedPages = new Map(referencePages().map(({ path, markdown }) => [`${path}.md`, markdown]));

/**
 * A page that fetches its modules after its first paint: on a slow line they would share it with the text and its style.
 * Pages out of sight are not painted, and some browsers do not tell of paints.
 */
function afterFirstPaint(html: string): string {
  let modules = '';
  const text = html.replace(
    /<script type="module" src="[^"]+"><\/script>|<link rel="modulepreload"[^>]*>/g,
    (tag) => {
      modules += tag;
      return '';
    },
  );
  return text.replace(
    '</head>',
    `<script>(() => {
  let modules = ${JSON.stringify(modules).replaceAll('</', '<\\/')};
  const add = () => {
    const late = document.createRange().createContextualFragment(modules);
    modules = '';
    // In their order: the first has what the others read.
    for (const script of late.querySelectorAll('script')) script.async = false;
    document.head.append(late);
  };
  if (document.hidden) return add();
  setTimeout(add, 3000);
  new PerformanceObserver(add).observe({ type: 'paint', buffered: true });
})();</script>\n</head>`,
  );
}

export default defineConfig({
  title,
  description,
  lang: 'en',
  base,
  cleanUrls: true,
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `data:image/svg+xml;base64,${icon}` }],
    ['script', { type: 'module', src: `${base}servegym-sim.js` }],
  ],
  // The files of <servegym-sim> and <servegym-gym>.
  vite: { publicDir: join(docs, '../packages/element/dist') },
  vue: { template: { compilerOptions: { isCustomElement: (tag) => tag.startsWith('servegym-') } } },
  outDir: join(docs, '..', 'dist', 'docs'),
  srcExclude: ['README.md'],
  // Other links that lead nowhere stop the build.
  ignoreDeadLinks: 'localhostLinks',
  markdown: { config: linkRepository, image: { lazyLoad: true } },
  themeConfig: {
    search: {
      provider: 'local',
      // VitePress reads pages from the folder of the pages, where those that are generated are not.
      options: {
        _render: (text, env, markdown) =>
          // Hundreds of pages of servers are alike: their list is searched.
          /^servers\/.+\//.test(env.relativePath)
            ? ''
            : markdown.renderAsync(generatedPages.get(env.relativePath) ?? text, env),
      },
    },
    outline: [2, 3],
    nav: [
      { text: 'How it works', link: '/how-it-works' },
      { text: 'Plan', link: '/plan' },
      { text: 'Servers', link: '/servers/', activeMatch: '/servers/' },
      { text: 'Environments', link: '/environments' },
      { text: 'Play', link: '/play' },
      { text: 'Benchmarks', link: '/benchmarks' },
      { text: 'Reference', link: '/reference/command-line', activeMatch: '/reference/' },
    ],
    sidebar: found.map((section) => ({
      text: section.title,
      collapsed: section.title === 'Reference',
      items: section.pages.map(({ path, title }) => ({ text: title, link: `/${path}` })),
    })),
    editLink: { pattern: `${REPOSITORY}/edit/main/docs/:path` },
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
  },
  transformHtml(html, _, { pageData }) {
    // The layout of the home page has no main landmark of its own.
    const isHome = pageData.frontmatter.layout === 'home';
    return afterFirstPaint(isHome ? html.replace('id="VPContent"', 'id="VPContent" role="main"') : html);
  },
  buildEnd({ outDir }) {
    const models = join(generatedServers, 'models.json');
    if (existsSync(models)) copyFileSync(models, join(outDir, 'servers', 'models.json'));
    writeForLanguageModels(outDir, { title, description, address: `${origin}${base}` }, found);
  },
});

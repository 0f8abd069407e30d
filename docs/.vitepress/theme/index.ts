import theme from 'vitepress/theme-without-fonts';
import '../../../packages/element/src/curve-charts.css';
import './style.css';

export default theme;

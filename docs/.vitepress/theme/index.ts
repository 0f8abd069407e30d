import theme from 'vitepress/theme';
import '../../../packages/element/src/curve-charts.css';
import './style.css';

export default theme;

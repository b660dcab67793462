// What of ECharts the report draws with: rebuild.sh makes echarts.bundle.js of it.
import * as core from "echarts/core";
import { BarChart, CustomChart, LineChart, ScatterChart, TreemapChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

core.use([
  BarChart, CustomChart, LineChart, ScatterChart, TreemapChart,
  DataZoomComponent, GridComponent, LegendComponent, TooltipComponent,
  CanvasRenderer,
]);

export const { init, getInstanceByDom } = core;

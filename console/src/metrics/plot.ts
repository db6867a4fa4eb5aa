/** The library of the charts, which only their pages load. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export default uPlot;

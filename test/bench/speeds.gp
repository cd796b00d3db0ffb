# SPDX-License-Identifier: GPL-2.0-only
# Plots dump and restore of one large BO and of a real workload against the limit, over the speed of the copy engine:
# gnuplot -e "csv='...'; svg='...'" speeds.gp
set terminal svg size 1000,420 font "sans,12" background "white"
set output svg
set datafile separator ","
set multiplot layout 1,2
set logscale x
set xrange [1.7:30]
set xtics (2, 8, 25)
set xlabel "speed of the copy engine, GB/s"
set ylabel "limit / time"
set yrange [0:1.3]
set grid
set key below maxrows 3
max(a, b) = a > b ? a : b
# without the rows at the speed of storage alone
known(speed) = speed == 2 || speed == 8 || speed == 25
chosen(name, direction) = strcol(1) eq name && strcol(2) eq "1" && strcol(3) eq direction && strcol(4) eq "tmpfs" && known(column(5))
ours(name, direction) = chosen(name, direction) ? column(11) : NaN
reference(name, direction) = chosen(name, direction) ? max(column(8), column(9)) / column(6) : NaN
set datafile missing NaN
do for [direction in "dump restore"] {
	set title direction . ", tmpfs"
	plot csv every ::1 using 5:(ours("big", direction)) with linespoints lw 2 pt 7 lc rgb "#c1272d" title "plugin, one BO", \
	     csv every ::1 using 5:(ours("P1-issue2663", direction)) with linespoints lw 2 pt 6 lc rgb "#c1272d" title "plugin, P1", \
	     csv every ::1 using 5:(reference("big", direction)) with linespoints lw 2 pt 7 lc rgb "#808080" title "reference, one BO", \
	     csv every ::1 using 5:(reference("P1-issue2663", direction)) with linespoints lw 2 pt 6 lc rgb "#808080" title "reference, P1", \
	     1 with lines dt 2 lc rgb "black" title "the limit"
}

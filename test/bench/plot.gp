# SPDX-License-Identifier: GPL-2.0-only
# Plots how near each case comes to the slower of copy engine and storage, which is 1: gnuplot -e "csv='...'; svg='...'" plot.gp
set terminal svg size 1800,700 font "sans,11" background "white"
set output svg
set datafile separator ","
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 noborder
set title "Speed, as a part of what the slower of copy engine and storage could do alone"
set ylabel "limit / time"
set yrange [0:*]
set grid ytics
set key top left horizontal
set xtics rotate by -60 scale 0 font ",8"
set bmargin 16
name(c) = sprintf("%s %s %s %s GB/s x%s", strcol(1), strcol(3), strcol(4), strcol(5), strcol(2))
max(a, b) = a > b ? a : b
plot csv every ::1 using (max(column(8), column(9)) / column(6)):xtic(name(0)) title "practice so far" lc rgb "#b0b0b0", \
     csv every ::1 using 11 title "this plugin" lc rgb "#c1272d", \
     1 title "the limit" lc rgb "black" dt 2 with lines


fork¢
xInput"xú

¢
uInterpx"u
{{/* The gateway's file, and what the manifests have to know of it. */}}
{{- define "oncegate.config" -}}
{{- toYaml .Values.config -}}
{{- end }}

{{/* The port of `IP:PORT`. */}}
{{- define "oncegate.port" -}}
{{- regexFind "[0-9]+$" . -}}
{{- end }}

{{/* Whole seconds of a duration like `250ms` or `2m`, rounded up. */}}
{{- define "oncegate.seconds" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- if eq $unit "ms" -}}
{{- div (add $number 999) 1000 -}}
{{- else -}}
{{- dict "s" 1 "m" 60 "h" 3600 "d" 86400 | dig $unit 0 | mul $number -}}
{{- end -}}
{{- end }}

{{/*
How long a pod may take to end: it goes on serving, finishes what is in flight, and closes the ledger;
the rest is for the last log lines.
*/}}
{{- define "oncegate.gracePeriod" -}}
{{- $delay := .Values.config.drain_delay | default "0s" | include "oncegate.seconds" -}}
{{- $finish := .Values.config.drain_timeout | default "40s" | include "oncegate.seconds" -}}
{{- $close := .Values.config.ledger.timeout | default "5s" | include "oncegate.seconds" -}}
{{- add $delay $finish $close 5 -}}
{{- end }}

{{/* Where the volume of an embedded ledger is. */}}
{{- define "oncegate.data" -}}/var/lib/oncegate{{- end }}

(** * Every context that can occur

    A _column_ is all that the next column depends on. What columns can be reached is defined first by three rules, as
    step 2 of the chapter has it; then it is computed; then both are shown to be the same. *)

From Coq Require Import Sorted.
From Adder Require Export Model.

(** ** Columns *)

Inductive column :=
| Signs (* before the first column there are only signs *)
| Column (a b : option digit) (written : digit) (carry first : bool).
    (* two digits, or none where a number has ended; the digit written under them; whether a 1 is carried out of them;
       whether they are the first digits *)

(** What may come after a digit of a number. None starts again, and none ends on a zero, but for 0 itself. *)
Definition may_follow (first : bool) (here next : option digit) : bool :=
  match here, next with
  | None, Some _ => false
  | Some d0, None => first
  | _, _ => true
  end.

Definition is_digit (d : option digit) : bool := match d with Some _ => true | None => false end.

(** Whether the two digits [a] and [b], or their absence, can stand next to a column. *)
Definition allowed (here : column) (a b : option digit) : bool :=
  match here with
  | Signs => is_digit a && is_digit b
  | Column a' b' _ _ first => may_follow first a' a && may_follow first b' b
  end.

Definition carry_of (here : column) : bool := match here with Signs => false | Column _ _ _ carry _ => carry end.

Definition worth (d : option digit) : nat := match d with Some d => value d | None => 0 end.

Definition total (here : column) (a b : option digit) : nat := worth a + worth b + Nat.b2n (carry_of here).

(** The token that has to be written under [a] and [b]. *)
Definition right (here : column) (a b : option digit) : token :=
  match a, b, carry_of here with
  | None, None, false => End
  | _, _, _ => Digit (digit_of (total here a b))
  end.

(** The column that they then make. *)
Definition following (here : column) (a b : option digit) : column :=
  Column a b (digit_of (total here a b)) (10 <=? total here a b) (match here with Signs => true | _ => false end).

(** ** What can be reached *)

Inductive reachable : column -> Prop :=
| at_the_signs : reachable Signs
| one_more here a b :
    reachable here -> allowed here a b = true -> right here a b <> End -> reachable (following here a b).

(** What the token that was written last sees of a column and of the digits next to it. *)
Definition context_of (here : column) (a b : option digit) : context :=
  match here with
  | Signs => Context None (Some Plus) (Some Equals) (option_map Digit a) (option_map Digit b)
  | Column a' b' written _ _ =>
      Context (option_map Digit a') (option_map Digit b') (Some (Digit written))
              (option_map Digit a) (option_map Digit b)
  end.

(** A context that can occur, and the token that is right in it. *)
Inductive occurs : context -> token -> Prop :=
| there here a b : reachable here -> allowed here a b = true -> occurs (context_of here a b) (right here a b).

(** ** The search *)

(** A number for each digit, and one for its absence. *)
Definition code (d : option digit) : nat := match d with Some d => value d | None => 10 end.

Definition same (c d : column) : bool :=
  match c, d with
  | Signs, Signs => true
  | Column a b w k f, Column a' b' w' k' f' =>
      (code a =? code a') && (code b =? code b') && (value w =? value w') && eqb k k' && eqb f f'
  | _, _ => false
  end.

Definition all_optional : list (option digit) := None :: map Some all_digits.

Definition all_pairs : list (option digit * option digit) := list_prod all_optional all_optional.

Definition successors (here : column) : list column :=
  map (fun '(a, b) => following here a b)
      (filter (fun '(a, b) => allowed here a b && match right here a b with End => false | _ => true end) all_pairs).

Definition insert (found : list column) (c : column) : list column :=
  if existsb (same c) found then found else c :: found.

Definition extend (found : list column) : list column := fold_left insert (flat_map successors found) found.

(** Twice all that follows what was found; it turns out that there is no more. *)
Definition columns : list column := extend (extend [Signs]).

(** ** The list of contexts

    For all conceivable digits and written digits, one after the other: the columns found that show them, and with each
    two digits that can stand next to one of these, the token that is right there. *)

Definition shows (a b : option digit) (written : digit) (c : column) : bool :=
  match c with
  | Signs => false
  | Column a' b' written' _ _ => (code a =? code a') && (code b =? code b') && (value written =? value written')
  end.

Definition groups (found : list column) : list (list column) :=
  [Signs] :: map (fun '(a, b, written) => filter (shows a b written) found) (list_prod all_pairs all_digits).

Definition entries (group : list column) : list (context * token) :=
  flat_map
    (fun '(a, b) => match find (fun c => allowed c a b) group with
                    | Some here => [(context_of here a b, right here a b)]
                    | None => []
                    end)
    all_pairs.

Definition table_of (found : list column) : list (context * token) := flat_map entries (groups found).

Definition table : list (context * token) := table_of columns.

(** ** Three checks of a list of columns, which the computer does *)

Definition starts (found : list column) : bool := existsb (same Signs) found.

(** What follows a column of the list is in the list. *)
Definition closed (found : list column) : bool :=
  forallb (fun c => forallb (fun d => existsb (same d) found) (successors c)) found.

(** The carry is not in the window; but columns of the list that look alike carry alike. *)
Definition legible (found : list column) : bool :=
  forallb (fun c => match c with
                    | Signs => true
                    | Column a b written carry _ =>
                        forallb (fun d => implb (shows a b written d) (eqb carry (carry_of d))) found
                    end) found.

(** ** What [same], [all_pairs], [successors] and [extend] are *)

Lemma code_injective : forall d e, code d = code e -> d = e.
Proof.
  intros [d |] [e |] equal; simpl in equal; trivial.
  - now rewrite (value_injective d e).
  - pose proof (value_below_ten d). lia.
  - pose proof (value_below_ten e). lia.
Qed.

Lemma same_spec : forall c d, same c d = true <-> c = d.
Proof.
  intros [| a b w k f] [| a' b' w' k' f']; simpl; try (split; congruence).
  rewrite !andb_true_iff, !Nat.eqb_eq, !eqb_true_iff. split.
  - intros [[[[a_same b_same] w_same] ->] ->].
    now rewrite (code_injective a a'), (code_injective b b'), (value_injective w w').
  - intros [= -> -> -> -> ->]. tauto.
Qed.

Lemma in_spec : forall c found, existsb (same c) found = true <-> In c found.
Proof.
  intros. rewrite existsb_exists. split.
  - now intros (d & here & ->%same_spec).
  - intro here. exists c. now rewrite same_spec.
Qed.

Lemma all_digits_complete : forall d, In d all_digits.
Proof. destruct d; simpl; tauto. Qed.

Lemma all_pairs_complete : forall a b, In (a, b) all_pairs.
Proof.
  assert (forall d, In d all_optional) as complete.
  { intros [d |]; [right; apply in_map, all_digits_complete | now left]. }
  intros. now apply in_prod.
Qed.

Lemma in_successors : forall here d,
  In d (successors here) <->
  exists a b, d = following here a b /\ allowed here a b = true /\ right here a b <> End.
Proof.
  intros. unfold successors. rewrite in_map_iff. split.
  - intros ((a & b) & <- & (_ & kept)%filter_In). exists a, b. apply andb_true_iff in kept.
    destruct (right here a b); intuition discriminate.
  - intros (a & b & -> & possible & goes_on). exists (a, b). split; trivial.
    apply filter_In. split; [apply all_pairs_complete |]. rewrite possible. now destruct (right here a b).
Qed.

(** The search finds nothing that cannot be reached. *)
Lemma columns_sound : forall c, In c columns -> reachable c.
Proof.
  assert (forall new found c, In c (fold_left insert new found) -> In c new \/ In c found) as origin.
  { induction new as [| d new hypothesis]; intros found c here; [now right |].
    destruct (hypothesis _ _ here) as [| before]; [now left; right |]. unfold insert in before.
    destruct (existsb (same d) found); [now right |]. destruct before; [left; now left | now right]. }
  assert (forall found, (forall c, In c found -> reachable c) -> forall c, In c (extend found) -> reachable c)
    as step.
  { intros found sound c [new | old]%origin; [| now apply sound].
    apply in_flat_map in new as (here & known & (a & b & -> & possible & goes_on)%in_successors).
    apply one_more; auto. }
  apply step, step. intros c [<- | []]. apply at_the_signs.
Qed.

(** ** A list that passes the checks is what can be reached *)

Section Checked.

Variable found : list column.
Hypothesis is_sound : forall c, In c found -> reachable c.
Hypothesis is_started : starts found = true.
Hypothesis is_closed : closed found = true.
Hypothesis is_legible : legible found = true.

Lemma found_is_the_reachable : forall c, reachable c <-> In c found.
Proof.
  split; [| apply is_sound]. induction 1 as [| here a b _ known possible goes_on]; apply in_spec.
  - apply is_started.
  - unfold closed in is_closed. rewrite forallb_forall in is_closed. specialize (is_closed here known).
    rewrite forallb_forall in is_closed. apply is_closed, in_successors. eauto.
Qed.

(** So no context asks for two tokens. *)
Lemma alike : forall a b w k f d,
  reachable (Column a b w k f) -> reachable d -> shows a b w d = true ->
  carry_of d = k /\ forall a' b', context_of d a' b' = context_of (Column a b w k f) a' b'.
Proof.
  intros a b w k f d first second look. apply found_is_the_reachable in first, second.
  unfold legible in is_legible. rewrite forallb_forall in is_legible. specialize (is_legible _ first).
  cbn in is_legible. rewrite forallb_forall in is_legible. specialize (is_legible _ second).
  rewrite look in is_legible. apply eqb_prop in is_legible.
  destruct d as [| a' b' w' k' f']; [discriminate |]. simpl in look.
  rewrite !andb_true_iff, !Nat.eqb_eq in look. destruct look as [[a_same b_same] w_same].
  now rewrite (code_injective a a'), (code_injective b b'), (value_injective w w').
Qed.

Lemma table_of_found : forall c t, In (c, t) (table_of found) <-> occurs c t.
Proof.
  intros c t. unfold table_of. rewrite in_flat_map. split.
  - intros (group & here & listed). unfold entries in listed. apply in_flat_map in listed as ((a, b) & _ & listed).
    destruct (find _ group) as [d |] eqn:first; [| destruct listed].
    destruct listed as [[= <- <-] | []]. apply find_some in first as [among possible]. apply there; trivial.
    destruct here as [<- | here].
    + destruct among as [<- | []]. apply at_the_signs.
    + apply in_map_iff in here as (((a', b'), w) & <- & _). apply filter_In in among. now apply is_sound.
  - intros [here a b known possible]. destruct here as [| a' b' w k f].
    + exists [Signs]. split; [now left |]. apply in_flat_map. exists (a, b). split; [apply all_pairs_complete |].
      cbn [find]. rewrite possible. now left.
    + exists (filter (shows a' b' w) found). split.
      { right. apply (in_map (fun '(a, b, w) => filter (shows a b w) found) _ (a', b', w)).
        apply in_prod; [apply all_pairs_complete | apply all_digits_complete]. }
      apply in_flat_map. exists (a, b). split; [apply all_pairs_complete |].
      destruct (find _ _) as [d |] eqn:first.
      * apply find_some in first as [[listed look]%filter_In _].
        destruct (alike _ _ _ _ _ _ known (is_sound d listed) look) as [carry context].
        left. rewrite context. unfold right, total. now rewrite carry.
      * eapply find_none in first; [rewrite possible in first; discriminate |].
        apply filter_In. split; [now apply found_is_the_reachable |]. simpl. now rewrite !Nat.eqb_refl.
Qed.

Lemma one_answer_of_found : forall c t u, occurs c t -> occurs c u -> t = u.
Proof.
  assert (forall d e : option digit, option_map Digit d = option_map Digit e -> d = e) as digits_same.
  { intros [d |] [e |] equal; simpl in equal; congruence. }
  assert (forall a, option_map Digit a <> Some Plus) as no_sign by (intros [a |]; discriminate).
  intros c t u first second. destruct first as [here a b known _]. remember (context_of here a b) as shown.
  destruct second as [here' a' b' known' _].
  destruct here as [| x y w k f], here' as [| x' y' w' k' f']; injection Heqshown; intros; try congruence;
    repeat match goal with H : option_map Digit _ = option_map Digit _ |- _ => apply digits_same in H; subst end;
    trivial.
  destruct (alike _ _ _ _ _ _ known known') as [carry _]; [simpl; now rewrite !Nat.eqb_refl |].
  unfold right, total. simpl in *. now rewrite carry.
Qed.

End Checked.

(** ** The theorems of this file *)

Lemma columns_start : starts columns = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Lemma columns_closed : closed columns = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

Lemma columns_legible : legible columns = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(** The search is sound and complete. *)
Theorem columns_are_the_reachable : forall c, reachable c <-> In c columns.
Proof. exact (found_is_the_reachable columns columns_sound columns_start columns_closed). Qed.

(** So is the list of contexts and right tokens. *)
Theorem table_is_what_occurs : forall c t, In (c, t) table <-> occurs c t.
Proof. exact (table_of_found columns columns_sound columns_start columns_closed columns_legible). Qed.

(** No context asks for two tokens. *)
Theorem one_answer : forall c t u, occurs c t -> occurs c u -> t = u.
Proof. exact (one_answer_of_found columns columns_sound columns_start columns_closed columns_legible). Qed.

(** ** How many there are *)

Definition place_of_slot (t : option token) : N :=
  match t with Some (Digit d) => 3 + N.of_nat (value d) | None => 2 | Some Plus => 1 | _ => 0 end.

(** Slots read as the digits of a number; each context of the list has a larger one than that before it. *)
Definition place (c : context) : N :=
  fold_left (fun n t => 13 * n + place_of_slot t)%N
            [a_here c; b_here c; written_here c; a_next c; b_next c] 0%N.

Fixpoint increasing (l : list N) : bool :=
  match l with
  | n :: (m :: _) as rest => (n <? m)%N && increasing rest
  | _ => true
  end.

Theorem each_once : NoDup (map fst table).
Proof.
  assert (forall l, increasing l = true -> Sorted N.lt l) as sorted.
  { induction l as [| n [| m l] hypothesis]; intro up; [constructor | repeat constructor |].
    apply andb_true_iff in up as [less up]. constructor; [auto |]. constructor. now apply N.ltb_lt. }
  apply (NoDup_map_inv place).
  assert (StronglySorted N.lt (map place (map fst table))) as strong.
  { apply Sorted_StronglySorted; [exact N.lt_trans |]. apply sorted. vm_cast_no_check (eq_refl true). }
  induction strong as [| n l _ hypothesis less]; constructor; trivial.
  intro again. rewrite Forall_forall in less. now apply (N.lt_irrefl n), less.
Qed.

Theorem how_many : N.of_nat (length table) = 24518%N.
Proof. vm_cast_no_check (eq_refl 24518%N). Qed.

(** * Long multiplication

    A page of long multiplication, as chapter 78 has it: 12 x 34 is written [21*43=80400=8001400=$]. The row of digit i
    of the second factor is the total so far: its digits, each but the last followed by the carry out of its place. *)

From Adder Require Export Slots.

(** ** Texts *)

(** [a*b], the finished rows, and what there is of the next one; each begins with [=]. *)
Definition page (x y : list digit) (rows : list (list digit)) (row : list digit) : text :=
  map Digit x ++ Times :: map Digit y ++ flat_map (fun r => Equals :: map Digit r) rows ++ Equals :: map Digit row.

Definition page_question (a b : nat) : text := page (digits a) (digits b) [] [].

(** ** Addresses

    A token has a _part_ (0 and 1 the factors, 2 the page), a row, and a _step_, how far it is from the sign before
    it. *)

Definition page_place : Type := nat * nat * nat.

Fixpoint page_addresses (times : bool) (opened step : nat) (t : text) : list (page_place * token) :=
  let at_step p o s := (Nat.b2n p + Nat.min 1 o, o - 1, s) in
  match t with
  | [] => []
  | Digit d :: rest => (at_step times opened (S step), Digit d) :: page_addresses times opened (S step) rest
  | Times :: rest => (at_step true opened 0, Times) :: page_addresses true opened 0 rest
  | Equals :: rest => (at_step times (S opened) 0, Equals) :: page_addresses times (S opened) 0 rest
  | sign :: rest => (at_step times opened 0, sign) :: page_addresses times opened 0 rest
  end.

(** ** What a token sees *)

Inductive page_slot := FirstFactor | SecondFactor | Above | Before | OwnDigit | OwnSign.

(** The slot of a key for the last token, which has this part, row and step. Steps 2 m and 2 m + 1 ask for what is
    written at place m: its digit, and then the carry out of it. *)
Definition page_slot_of (part row step : nat) (k : page_place * token) (back : nat) : option page_slot :=
  let '((p, r, j), _) := k in
  let place := step / 2 in
  let is_digit := (part =? 2) && Nat.odd step in
  if (part =? 2) && (p =? 0) && (j + row =? S place) then Some FirstFactor
  else if (part =? 2) && (p =? 1) && (j =? S row) then Some SecondFactor
  else if (part =? 2) && (p =? 2) && (S r =? row) && (j =? S (2 * place)) then Some Above
  else if is_digit && (back =? 1) then Some Before
  else if is_digit && (back =? 0) then Some OwnDigit
  else if negb is_digit && (back =? 0) then Some OwnSign
  else None.

Definition visible_on_page (t : text) : list (page_slot * token) :=
  let all := page_addresses false 0 0 t in
  let '((part, row, step), _) := last all ((0, 0, 0), End) in in_slots (page_slot_of part row step) 0 all.

(** Six slots, and what is in them. *)
Record page_view := PageView
  { first_factor : option token; second_factor : option token; above : option token;
    before : option token; own_digit : option token; own_sign : option token }.

Definition keys_on_page (v : page_view) : list (page_slot * token) :=
  in_slot FirstFactor (first_factor v) ++ in_slot SecondFactor (second_factor v) ++ in_slot Above (above v) ++
  in_slot Before (before v) ++ in_slot OwnDigit (own_digit v) ++ in_slot OwnSign (own_sign v).

(** *** It is what the slots are named after *)

Lemma page_addresses_digits : forall times opened l step rest,
  page_addresses times opened step (map Digit l ++ rest) =
  run (fun j => (Nat.b2n times + Nat.min 1 opened, opened - 1, j)) step l ++
  page_addresses times opened (step + length l) rest.
Proof.
  induction l as [| d l hypothesis]; intros; simpl; [now rewrite Nat.add_0_r |].
  rewrite hypothesis. now rewrite Nat.add_succ_r.
Qed.

Definition sign_of_page (part row : nat) (t : token) : page_place * token := ((part, row, 0), t).

Definition row_of_page (row : nat) (l : list digit) : list (page_place * token) :=
  sign_of_page 2 row Equals :: run (fun j => (2, row, j)) 0 l.

Fixpoint rows_of_page (row : nat) (rows : list (list digit)) : list (page_place * token) :=
  match rows with
  | [] => []
  | l :: rest => row_of_page row l ++ rows_of_page (S row) rest
  end.

Definition factors_of_page (x y : list digit) : list (page_place * token) :=
  run (fun j => (0, 0, j)) 0 x ++ sign_of_page 1 0 Times :: run (fun j => (1, 0, j)) 0 y.

Lemma addresses_of_page : forall x y rows row,
  page_addresses false 0 0 (page x y rows row) =
  factors_of_page x y ++ rows_of_page 0 rows ++ row_of_page (length rows) row.
Proof.
  intros. unfold page, factors_of_page. rewrite page_addresses_digits. simpl. rewrite page_addresses_digits.
  rewrite <- app_assoc. simpl. do 3 f_equal.
  assert (forall step opened rows, page_addresses true opened step
      (flat_map (fun r => Equals :: map Digit r) rows ++ Equals :: map Digit row) =
    rows_of_page opened rows ++ row_of_page (opened + length rows) row) as general.
  { clear. intros step opened rows. revert step opened. induction rows as [| l rows hypothesis]; intros step opened.
    - simpl. rewrite <- (app_nil_r (map Digit row)), page_addresses_digits, app_nil_r, Nat.add_0_r.
      unfold row_of_page, sign_of_page. simpl. now rewrite Nat.sub_0_r.
    - simpl. rewrite <- app_assoc, page_addresses_digits, hypothesis. unfold row_of_page, sign_of_page. simpl.
      now rewrite Nat.sub_0_r, Nat.add_succ_r, <- app_assoc. }
  apply general.
Qed.

(** A key that is further away than the sign that opens the row. *)
Lemma far_away : forall row step p r j t back, step < back ->
  page_slot_of 2 row step ((p, r, j), t) back =
  if (p =? 0) && (j + row =? S (step / 2)) then Some FirstFactor
  else if (p =? 1) && (j =? S row) then Some SecondFactor
  else if (p =? 2) && (S r =? row) && (j =? S (2 * (step / 2))) then Some Above
  else None.
Proof.
  intros row step p r j t [| [| back]] further; [lia | |]; unfold page_slot_of; rewrite Nat.eqb_refl, !andb_true_l.
  - replace step with 0 by lia. reflexivity.
  - simpl (_ =? _) at 5 6 7. now rewrite !andb_false_r.
Qed.

(** A key of the row itself. *)
Lemma in_the_row : forall row step j t back,
  page_slot_of 2 row step ((2, row, j), t) back =
  if Nat.odd step then match back with 0 => Some OwnDigit | 1 => Some Before | _ => None end
  else if back =? 0 then Some OwnSign else None.
Proof.
  intros. unfold page_slot_of. rewrite (proj2 (Nat.eqb_neq (S row) row)) by lia. cbn [Nat.eqb andb].
  destruct (Nat.odd step), back as [| [| back]]; reflexivity.
Qed.

Lemma seen_of_factors : forall x y row step more, step < more ->
  in_slots (page_slot_of 2 row step) more (factors_of_page x y) =
  in_slot FirstFactor (if row <=? step / 2 then digit_at x (step / 2 - row) else None) ++
  in_slot SecondFactor (digit_at y row).
Proof.
  intros x y row step more enough. unfold factors_of_page. rewrite in_slots_app. cbn [in_slots snd].
  unfold sign_of_page. rewrite far_away by lia. cbn [Nat.eqb andb app].
  rewrite (by_index _ _ FirstFactor (S (step / 2) - row) (S step)); [| | lia].
  2: { intros j d back away. rewrite far_away by lia. change (0 =? 0) with true. cbn [andb].
       change ((0 =? 1) && _) with false. change ((0 =? 2) && _ && _) with false. cbn iota.
       destruct (Nat.eqb_spec (S j + row) (S (step / 2))), (Nat.eqb_spec (S j) (S (step / 2) - row)); trivial; lia. }
  rewrite (by_index _ _ SecondFactor (S row) (S step)); [| | lia].
  2: { intros j d back away. rewrite far_away by lia. reflexivity. }
  destruct (Nat.leb_spec row (step / 2)).
  - now replace (S (step / 2) - row) with (S (step / 2 - row)) by lia.
  - now replace (S (step / 2) - row) with 0 by lia.
Qed.

Lemma nothing_there : forall i, digit_at [] i = None.
Proof. now destruct i. Qed.

Lemma seen_of_rows : forall rows r row step more, r + length rows = row -> step < more ->
  in_slots (page_slot_of 2 row step) more (rows_of_page r rows) =
  in_slot Above (digit_at (last rows []) (2 * (step / 2))).
Proof.
  induction rows as [| l rows hypothesis]; intros r row step more counted enough.
  - cbn [last]. now rewrite nothing_there.
  - cbn [rows_of_page row_of_page]. rewrite in_slots_app, (hypothesis (S r)) by (simpl in counted; lia).
    unfold row_of_page, sign_of_page. cbn [in_slots snd]. rewrite far_away by lia.
    cbn [Nat.eqb andb]. rewrite andb_false_r. cbn [app].
    destruct rows as [| l' rows].
    + simpl in counted. rewrite (by_index _ _ Above (S (2 * (step / 2))) (S step)); [| | simpl; lia].
      2: { intros j d back away. rewrite far_away by lia. rewrite (proj2 (Nat.eqb_eq (S r) row)) by lia. reflexivity. }
      cbn [last]. rewrite nothing_there. cbn [in_slot]. now rewrite app_nil_r.
    + rewrite (by_none _ _ (S step)); [reflexivity | | lia].
      intros j d back away. rewrite far_away by lia.
      rewrite (proj2 (Nat.eqb_neq (S r) row)) by (simpl in counted; lia). reflexivity.
Qed.

Definition view_of_page (x y : list digit) (rows : list (list digit)) (l : list digit) : page_view :=
  let step := length l in
  let place := step / 2 in
  let i := length rows in
  let odd := Nat.odd step in
  PageView (if i <=? place then digit_at x (place - i) else None) (digit_at y i)
           (digit_at (last rows []) (2 * place))
           (if odd then digit_or_sign (Some Equals) l (step - 1) else None)
           (if odd then digit_at l (step - 1) else None)
           (if odd then None else digit_or_sign (Some Equals) l step).

Lemma visible_from_last_step : forall t part row step u,
  last (page_addresses false 0 0 t) ((0, 0, 0), End) = ((part, row, step), u) ->
  visible_on_page t = in_slots (page_slot_of part row step) 0 (page_addresses false 0 0 t).
Proof. intros t part row step u its_last. unfold visible_on_page. now rewrite its_last. Qed.

(** At every place of every page the last token sees these and no others. *)
Theorem seen_on_page : forall x y rows l,
  visible_on_page (page x y rows l) = keys_on_page (view_of_page x y rows l).
Proof.
  intros.
  destruct (last_of_run (fun j => (2, length rows, j)) l (sign_of_page 2 (length rows) Equals) ((0, 0, 0), End))
    as [t its_last].
  rewrite (visible_from_last_step _ 2 (length rows) (length l) (match l with [] => Equals | _ => t end)).
  2: { rewrite addresses_of_page, app_assoc, last_app by discriminate. etransitivity; [exact its_last |].
       now destruct l. }
  rewrite addresses_of_page.
  rewrite !in_slots_app. set (step := length l).
  assert (length (row_of_page (length rows) l) = S step) as long
    by (unfold row_of_page; cbn [length]; now rewrite length_run).
  rewrite seen_of_factors, (seen_of_rows rows 0) by (rewrite ?app_length, ?long; trivial; lia).
  unfold keys_on_page, view_of_page. cbn [first_factor second_factor above before own_digit own_sign].
  rewrite <- app_assoc. do 3 f_equal. fold step.
  unfold row_of_page, sign_of_page. cbn [in_slots snd]. rewrite in_the_row, length_run, Nat.add_0_r. fold step.
  destruct (Nat.odd step) eqn:odd.
  - rewrite (by_last_two _ _ OwnDigit Before) by (intros; rewrite in_the_row, odd; reflexivity).
    unfold step in *. destruct l as [| d [| e l]]; [discriminate | reflexivity |].
    simpl. now rewrite !app_nil_r.
  - rewrite (by_last _ _ OwnSign 0) by (intros; rewrite in_the_row, odd, Nat.add_0_r; reflexivity).
    unfold step in *. destruct l as [| d l]; reflexivity.
Qed.

(** ** What has to be written *)

(** What comes together at a place: a digit of each factor, the digit above, and the carry from the place before. *)
Definition cell (a r : option digit) (b : digit) (carry : nat) : nat := worth a * value b + worth r + carry.

Lemma number_of_zeros : forall n, number (repeat d0 n) = 0.
Proof. induction n; simpl; lia. Qed.

Section Row.

Variables x over : list digit. (* the first factor, and the total so far *)
Variable b : digit.
Variable i : nat. (* the row, for this digit of the second factor *)

Definition factor_at (m : nat) : option digit := if i <=? m then nth_error x (m - i) else None.

Fixpoint carry_to (m : nat) : nat :=
  match m with
  | 0 => 0
  | S k => cell (factor_at k) (nth_error over k) b (carry_to k) / 10
  end.

Definition cell_at (m : nat) : nat := cell (factor_at m) (nth_error over m) b (carry_to m).

Definition total_digit (m : nat) : digit := digit_of (cell_at m).

(** The new total has a place more than where the factor reaches. *)
Definition new_total : list digit := map total_digit (seq 0 (length x + i + 1)).

(** Digits and carries, in turn. *)
Definition row_step (k : nat) : digit := if Nat.even k then total_digit (k / 2) else digit_of (carry_to (S (k / 2))).

Definition new_row : list digit := map row_step (seq 0 (2 * (length x + i) + 1)).

Lemma worth_below_ten : forall d, worth d < 10.
Proof. intros [d |]; simpl; [apply value_below_ten | lia]. Qed.

Lemma carry_at_most : forall m, carry_to m <= match over with [] => value b - 1 | _ => value b end.
Proof.
  pose proof (value_below_ten b). induction m as [| m hypothesis]; cbn [carry_to]; [lia |]. unfold cell.
  pose proof (worth_below_ten (factor_at m)) as one. pose proof (worth_below_ten (nth_error over m)) as other.
  assert (worth (factor_at m) * value b <= 9 * value b) by nia.
  apply Nat.lt_succ_r, Nat.div_lt_upper_bound; [lia |].
  destruct over as [| d l]; [replace (worth (nth_error [] m)) with 0 by now destruct m |]; lia.
Qed.

Lemma carry_below_ten : forall m, carry_to m < 10.
Proof. intro m. pose proof (carry_at_most m). pose proof (value_below_ten b). destruct over; lia. Qed.

Lemma no_carry_yet : forall m, m <= i -> carry_to m = 0.
Proof.
  induction m as [| m hypothesis]; intro early; trivial. cbn [carry_to]. rewrite hypothesis by lia.
  unfold factor_at. rewrite (proj2 (Nat.leb_gt i m)) by lia. unfold cell. simpl worth at 1.
  pose proof (worth_below_ten (nth_error over m)). apply Nat.div_small. lia.
Qed.

Hypothesis not_longer : length over <= length x + i.

Lemma nothing_on_top : factor_at (length x + i) = None /\ nth_error over (length x + i) = None.
Proof.
  unfold factor_at. destruct (i <=? length x + i); split; trivial; apply nth_error_None; lia.
Qed.

Lemma no_carry_at_the_top : carry_to (length x + i + 1) = 0.
Proof.
  rewrite Nat.add_1_r. cbn [carry_to]. destruct nothing_on_top as [-> ->].
  apply Nat.div_small, carry_below_ten.
Qed.

Lemma worth_of_factor : forall m, worth (factor_at m) = worth (nth_error (repeat d0 i ++ x) m).
Proof.
  intro m. unfold factor_at. destruct (Nat.leb_spec i m) as [there | before].
  - rewrite nth_error_app2; rewrite repeat_length; trivial.
  - rewrite nth_error_app1 by now rewrite repeat_length.
    destruct (nth_error (repeat d0 i) m) as [d |] eqn:zero; trivial.
    apply nth_error_In, repeat_spec in zero. now rewrite zero.
Qed.

Lemma cells_add : forall m,
  number (map total_digit (seq 0 m)) + 10 ^ m * carry_to m =
  up_to m over + value b * up_to m (repeat d0 i ++ x).
Proof.
  induction m as [| m hypothesis]; [simpl; lia |].
  rewrite seq_S, map_app, number_app, map_length, seq_length. cbn [plus map number up_to carry_to].
  unfold total_digit at 2, cell_at, cell. rewrite value_digit_of, <- worth_of_factor, Nat.pow_succ_r'.
  set (whole := worth (factor_at m) * value b + worth (nth_error over m) + carry_to m).
  pose proof (Nat.div_mod_eq whole 10) as split. unfold whole at 1 in split. nia.
Qed.

Lemma new_total_is : number new_total = number over + value b * (10 ^ i * number x).
Proof.
  pose proof (cells_add (length x + i + 1)) as whole. rewrite no_carry_at_the_top in whole. fold new_total in whole.
  rewrite !number_up_to in whole by (rewrite ?app_length, ?repeat_length; lia).
  rewrite number_app, repeat_length in whole.
  rewrite number_of_zeros in whole. lia.
Qed.

End Row.

Section Page.

Variables x y : list digit.

(** The total after [i] rows. *)
Fixpoint total_after (i : nat) : list digit :=
  match i with
  | 0 => []
  | S j => new_total x (total_after j) (nth j y d0) j
  end.

Definition row_at (i : nat) : list digit := new_row x (total_after i) (nth i y d0) i.

Lemma length_of_total : forall i, length (total_after i) = match i with 0 => 0 | S j => length x + j + 1 end.
Proof. intros [| j]; trivial. simpl. unfold new_total. now rewrite map_length, seq_length. Qed.

Lemma total_not_longer : forall i, length (total_after i) <= length x + i.
Proof. intro i. rewrite length_of_total. destruct i; lia. Qed.

Theorem total_is : forall i, number (total_after i) = number x * up_to i y.
Proof.
  induction i as [| j hypothesis]; [simpl; lia |]. cbn [total_after up_to].
  rewrite new_total_is, hypothesis by apply total_not_longer.
  replace (worth (nth_error y j)) with (value (nth j y d0)); [lia |].
  destruct (nth_error y j) as [d |] eqn:there; [now rewrite (nth_error_nth y j d0 there) |].
  apply nth_error_None in there. now rewrite nth_overflow.
Qed.

(** What stands above: every second digit of the row before. *)
Lemma above_is : forall i m, digit_at (last (map row_at (seq 0 i)) []) (2 * m) = digit_at (total_after i) m.
Proof.
  intros [| j] m; [now rewrite !nothing_there |]. rewrite seq_S, map_app. cbn [map plus]. rewrite last_last.
  unfold row_at, new_row. cbn [total_after]. unfold new_total.
  destruct (Nat.lt_ge_cases m (length x + j + 1)) as [inside | beyond].
  - rewrite !digit_of_run by lia. unfold row_step.
    rewrite (proj2 (Nat.even_spec (2 * m))) by now exists m. now rewrite Nat.mul_comm, Nat.div_mul.
  - unfold digit_at. rewrite !(proj2 (nth_error_None _ _)); trivial; rewrite map_length, seq_length; lia.
Qed.

End Page.

(** ** The list of contexts *)

Definition sign_or_digit (c : option digit) : token := match c with None => Equals | Some c => Digit c end.

(** What can be known at a place: a digit of the first factor and the one above, what came before, whether it is the
    top. *)
Definition place_of_cell : Type := option digit * option digit * option digit * bool.

(** Before the digit of a place is written: a carry or [=] came before. *)
Definition entry_digit (b : digit) (known : place_of_cell) : page_view * token :=
  let '(a, r, c, _) := known in
  (PageView (option_map Digit a) (Some (Digit b)) (option_map Digit r) None None (Some (sign_or_digit c)),
   Digit (digit_of (cell a r b (worth c)))).

(** After it: the carry out of the place is due, or at the top of the row the sign. *)
Definition entry_carry (b : digit) (known : place_of_cell) : page_view * token :=
  let '(a, r, c, top) := known in
  (PageView (option_map Digit a) (Some (Digit b)) (option_map Digit r) (Some (sign_or_digit c))
            (Some (Digit (digit_of (cell a r b (worth c))))) None,
   if top then Equals else Digit (digit_of (cell a r b (worth c) / 10))).

Definition entry_end (r : digit) : page_view * token :=
  (PageView None None (Some (Digit r)) None None (Some Equals), End).

Definition some_digits : list (option digit) := map Some all_digits.

(** The carries from 0 to [most]. *)
Definition carries (most : nat) : list (option digit) := map (fun c => Some (digit_of c)) (seq 0 (S most)).

(** What can come together: digits of the first factor and above, what came before, and whether this is the top. *)
Definition cells_of (b : digit) : list place_of_cell :=
  map (fun a => (a, None, None, false)) some_digits ++
  map (fun r => (None, r, None, false)) some_digits ++
  map (fun r => (None, r, Some d0, false)) some_digits ++
  map (fun '(a, c) => (a, None, c, false)) (list_prod some_digits (carries (value b - 1))) ++
  map (fun '(a, r, c) => (a, r, c, false)) (list_prod (list_prod some_digits some_digits) (carries (value b))) ++
  map (fun c => (None, None, c, true)) (carries (value b)).

Definition page_table : list (page_view * token) :=
  map entry_end all_digits ++
  flat_map (fun b => map (entry_digit b) (cells_of b) ++ map (entry_carry b) (cells_of b)) all_digits.

Theorem how_many_of_pages : N.of_nat (length page_table) = 12640%N.
Proof. vm_cast_no_check (eq_refl 12640%N). Qed.

(** ** What occurs is in the list *)

Section Written.

Variables x y : list digit.
Hypothesis proper_x : proper x.
Hypothesis proper_y : proper y.

Definition factor_digit (i : nat) : digit := nth i y d0.

(** The carry that came before place [m] of row [i], [None] at the sign. *)
Definition carry_before (i m : nat) : option digit :=
  match m with
  | 0 => None
  | S _ => Some (digit_of (carry_to x (total_after x y i) (factor_digit i) i m))
  end.

Lemma worth_of_carry : forall i m, worth (carry_before i m) = carry_to x (total_after x y i) (factor_digit i) i m.
Proof.
  intros i [| m]; trivial. unfold carry_before, worth. rewrite value_digit_of. apply Nat.mod_small, carry_below_ten.
Qed.

Definition known_at (i m : nat) : place_of_cell :=
  (factor_at x i m, nth_error (total_after x y i) m, carry_before i m, m =? length x + i).

Lemma in_some_digits : forall d, In (Some d) some_digits.
Proof. intro. apply in_map, all_digits_complete. Qed.

Lemma in_carries : forall c most, c <= most -> In (Some (digit_of c)) (carries most).
Proof. intros c most small. apply (in_map (fun c => Some (digit_of c))), in_seq. lia. Qed.

Lemma known_is_listed : forall i m, m <= length x + i -> In (known_at i m) (cells_of (factor_digit i)).
Proof.
  intros i m inside. pose proof (proper_some x proper_x) as some.
  pose proof (length_of_total x y i) as long. pose proof (total_not_longer x y i) as not_longer.
  pose proof (carry_at_most x (total_after x y i) (factor_digit i) i m) as small.
  unfold known_at, cells_of. rewrite !in_app_iff. destruct (Nat.eqb_spec m (length x + i)) as [top | below].
  - subst m. destruct (nothing_on_top x (total_after x y i) i not_longer) as [-> ->]. do 5 right.
    unfold carry_before. destruct (length x + i) as [| k] eqn:high; [lia |].
    apply (in_map (fun c => (None, None, c, true))), in_carries.
    destruct (total_after x y i); lia.
  - destruct (Nat.le_gt_cases i m) as [reached | before].
    + unfold factor_at. rewrite (proj2 (Nat.leb_le i m)) by trivial.
      destruct (nth_error x (m - i)) as [a |] eqn:there; [| apply nth_error_None in there; lia].
      destruct i as [| j].
      * cbn [total_after] in *. replace (nth_error [] m) with (@None digit) by now destruct m.
        destruct m as [| k]; [left; apply (in_map (fun a => (a, None, None, false))), in_some_digits |].
        do 3 right. left. apply (in_map (fun '(a, c) => (a, None, c, false)) _ (Some a, _)), in_prod;
          [apply in_some_digits | now apply in_carries].
      * destruct (nth_error (total_after x y (S j)) m) as [r |] eqn:above; [| apply nth_error_None in above; lia].
        destruct m as [| k]; [lia |]. do 4 right. left.
        apply (in_map (fun '(a, r, c) => (a, r, c, false)) _ (Some a, Some r, _)), in_prod.
        { apply in_prod; apply in_some_digits. }
        apply in_carries. destruct (total_after x y (S j)); lia.
    + unfold factor_at. rewrite (proj2 (Nat.leb_gt i m)) by trivial. destruct i as [| j]; [lia |].
      destruct (nth_error (total_after x y (S j)) m) as [r |] eqn:above; [| apply nth_error_None in above; lia].
      right. destruct m as [| k]; [left; apply (in_map (fun r => (None, r, None, false))), in_some_digits |].
      right. left. unfold carry_before. rewrite no_carry_yet by lia.
      apply (in_map (fun r => (None, r, Some d0, false))), in_some_digits.
Qed.

Let step_at (i : nat) : nat -> digit := row_step x (total_after x y i) (factor_digit i) i.

Lemma step_even : forall i m, step_at i (2 * m) = digit_of (cell_at x (total_after x y i) (factor_digit i) i m).
Proof.
  intros. unfold step_at, row_step. rewrite (proj2 (Nat.even_spec (2 * m))) by now exists m.
  now rewrite Nat.mul_comm, Nat.div_mul.
Qed.

Lemma step_odd : forall i m,
  step_at i (S (2 * m)) = digit_of (carry_to x (total_after x y i) (factor_digit i) i (S m)).
Proof.
  intros. unfold step_at, row_step. rewrite Nat.even_succ.
  replace (Nat.odd (2 * m)) with false by (symmetry; rewrite Nat.odd_mul; reflexivity).
  now replace (S (2 * m) / 2) with m by lia.
Qed.

(** Row [i] after [k] tokens. *)
Definition begun (i k : nat) : text := page x y (map (row_at x y) (seq 0 i)) (map (step_at i) (seq 0 k)).

Lemma came_before : forall i m k, 2 * m <= k ->
  digit_or_sign (Some Equals) (map (step_at i) (seq 0 k)) (2 * m) = Some (sign_or_digit (carry_before i m)).
Proof.
  intros i [| m] k enough; trivial. replace (2 * S m) with (S (S (2 * m))) in * by lia. cbn [digit_or_sign].
  rewrite digit_of_run by lia. now rewrite step_odd.
Qed.

Lemma cell_known : forall i m,
  cell (factor_at x i m) (nth_error (total_after x y i) m) (factor_digit i) (worth (carry_before i m)) =
  cell_at x (total_after x y i) (factor_digit i) i m.
Proof. intros. now rewrite worth_of_carry. Qed.

Lemma listed_digit : forall i m, i < length y -> m <= length x + i ->
  In (view_of_page x y (map (row_at x y) (seq 0 i)) (map (step_at i) (seq 0 (2 * m))), Digit (step_at i (2 * m)))
     page_table.
Proof.
  intros i m row_there inside. apply in_app_iff. right. apply in_flat_map. exists (factor_digit i).
  split; [apply all_digits_complete |]. apply in_app_iff. left. apply in_map_iff. exists (known_at i m).
  split; [| now apply known_is_listed]. unfold entry_digit, known_at, view_of_page.
  rewrite !map_length, !seq_length, cell_known, step_even, above_is, came_before by lia.
  replace (Nat.odd (2 * m)) with false by (symmetry; rewrite Nat.odd_mul; reflexivity).
  replace (2 * m / 2) with m by lia. f_equal. f_equal.
  - unfold factor_at. now destruct (i <=? m).
  - unfold digit_at, factor_digit. now rewrite (nth_error_nth' y d0 row_there).
Qed.

Lemma listed_carry : forall i m, i < length y -> m <= length x + i ->
  In (view_of_page x y (map (row_at x y) (seq 0 i)) (map (step_at i) (seq 0 (S (2 * m)))),
      if m =? length x + i then Equals else Digit (step_at i (S (2 * m)))) page_table.
Proof.
  intros i m row_there inside. apply in_app_iff. right. apply in_flat_map. exists (factor_digit i).
  split; [apply all_digits_complete |]. apply in_app_iff. right. apply in_map_iff. exists (known_at i m).
  split; [| now apply known_is_listed]. unfold entry_carry, known_at, view_of_page.
  rewrite !map_length, !seq_length, cell_known, step_odd.
  replace (Nat.odd (S (2 * m))) with true
    by (symmetry; rewrite Nat.odd_succ; apply Nat.even_spec; now exists m).
  replace (S (2 * m) / 2) with m by lia. rewrite above_is. replace (S (2 * m) - 1) with (2 * m) by lia.
  rewrite came_before, digit_of_run, step_even by lia. f_equal. f_equal.
  - unfold factor_at. now destruct (i <=? m).
  - unfold digit_at, factor_digit. now rewrite (nth_error_nth' y d0 row_there).
Qed.

Lemma listed_end :
  In (view_of_page x y (map (row_at x y) (seq 0 (length y))) [], End) page_table.
Proof.
  pose proof (proper_some x proper_x). pose proof (proper_some y proper_y).
  apply in_app_iff. left. unfold view_of_page. rewrite map_length, seq_length. cbn [length Nat.odd Nat.even negb].
  change (0 / 2) with 0. rewrite above_is.
  replace (digit_at y (length y)) with (@None token) by (unfold digit_at; now rewrite (proj2 (nth_error_None _ _))).
  destruct (total_after x y (length y)) as [| r l] eqn:above.
  { pose proof (length_of_total x y (length y)) as long. rewrite above in long.
    destruct (length y); simpl in long; lia. }
  destruct (length y) as [| j]; [lia |]. apply (in_map entry_end _ r), all_digits_complete.
Qed.

End Written.

(** ** The theorem *)

Definition ended (row : list digit) : text := map Digit row ++ [Equals].

(** The digits of a row, without its carries. *)
Fixpoint every_second (row : list digit) : list digit :=
  match row with
  | d :: _ :: rest => d :: every_second rest
  | _ => row
  end.

Lemma every_second_of_run : forall (w : nat -> digit) n s,
  every_second (map w (seq s (2 * n + 1))) = map (fun m => w (s + 2 * m)) (seq 0 (n + 1)).
Proof.
  induction n as [| n hypothesis]; intro s; [simpl; now rewrite Nat.add_0_r |].
  replace (2 * S n + 1) with (S (S (2 * n + 1))) by lia. cbn [seq map every_second]. rewrite hypothesis.
  cbn [plus seq map]. rewrite <- seq_shift, map_map. f_equal; [f_equal; lia |]. apply map_ext. intro m. f_equal. lia.
Qed.

Lemma row_is : forall x y i, number (every_second (row_at x y i)) = number x * up_to (S i) y.
Proof.
  intros. rewrite <- total_is. unfold row_at, new_row. rewrite every_second_of_run. cbn [total_after]. unfold new_total.
  f_equal. apply map_ext. intro m. apply (step_even x y).
Qed.

Lemma page_goes_on : forall x y rows l d, page x y rows l ++ map Digit d = page x y rows (l ++ d).
Proof. intros. unfold page. now rewrite map_app, <- !app_assoc, <- app_comm_cons, <- !app_assoc. Qed.

Lemma page_turns : forall x y rows l, page x y rows l ++ [Equals] = page x y (rows ++ [l]) [].
Proof.
  intros. unfold page. rewrite flat_map_app. simpl. rewrite <- !app_assoc, <- app_comm_cons, <- !app_assoc. simpl.
  now rewrite <- !app_assoc.
Qed.

(** Let the next token on a page be decided by what is seen in the six slots alone, and rightly in every context of the
    list. Then greedy decoding after [a*b=] writes, whatever the numbers, a row for each digit of [b], each ended by
    [=], and then the end token. Without its carries a row has the digits of [a] times the digits of [b] so far, and the last
    those of [a * b]. *)
Theorem multiplies_all_numbers :
  forall (next : text -> token) (decide : list (page_slot * token) -> token),
    (forall x y rows row,
      next (page x y rows row) =
        decide (visible_on_page (page x y rows row))) ->
    (forall v t, In (v, t) page_table ->
      decide (keys_on_page v) = t) ->
    forall a b : nat,
      exists rows : list (list digit),
        (forall steps, length (flat_map ended rows) < steps ->
          greedy next steps (page_question a b) =
            flat_map ended rows ++ [End]) /\
        length rows = length (digits b) /\
        (forall i row, nth_error rows i = Some row ->
          number (every_second row) = a * (b mod 10 ^ S i)) /\
        number (every_second (last rows [])) = a * b.
Proof.
  intros next decide local is_right a b.
  pose proof (digits_proper a) as proper_a. pose proof (digits_proper b) as proper_b.
  pose proof (proper_some _ proper_b) as some.
  pose proof (number_digits a) as is_a. pose proof (number_digits b) as is_b.
  unfold page_question. set (x := digits a) in *. set (y := digits b) in *.
  assert (forall rows l t, In (view_of_page x y rows l, t) page_table -> next (page x y rows l) = t) as follows.
  { intros rows l t here. rewrite local, seen_on_page. now apply is_right. }
  exists (map (row_at x y) (seq 0 (length y))). split; [| split; [| split]].
  - assert (forall rest i steps, i + rest = length y ->
      length (flat_map ended (map (row_at x y) (seq i rest))) < steps ->
      greedy next steps (page x y (map (row_at x y) (seq 0 i)) []) =
      flat_map ended (map (row_at x y) (seq i rest)) ++ [End]) as rows_from.
    { induction rest as [| rest hypothesis]; intros i steps all enough.
      - destruct steps as [| steps]; [simpl in enough; lia |]. rewrite Nat.add_0_r in all. subst i. cbn [greedy].
        now rewrite (follows _ _ _ (listed_end x y proper_a proper_b)).
      - cbn [seq map flat_map] in *. rewrite app_length in enough. unfold ended at 1 in enough.
        rewrite app_length, map_length in enough. cbn [length] in enough.
        assert (length (row_at x y i) = 2 * (length x + i) + 1) as long
          by (unfold row_at, new_row; now rewrite map_length, seq_length).
        rewrite long in enough. unfold ended at 1. rewrite <- !app_assoc.
        rewrite (greedy_digits next (row_step x (total_after x y i) (factor_digit y i) i) _ (2 * (length x + i) + 1));
          [| lia |].
        2: { intros k inside. rewrite page_goes_on, app_nil_l. apply follows.
             destruct (Nat.Even_or_Odd k) as [[m ->] | [m odd]].
             - apply (listed_digit x y proper_a); lia.
             - replace k with (S (2 * m)) by lia.
               pose proof (listed_carry x y proper_a i m ltac:(lia) ltac:(lia)) as here.
               rewrite (proj2 (Nat.eqb_neq m _)) in here by lia. exact here. }
        cbv zeta. change (map (row_step _ _ _ _) _) with (row_at x y i). f_equal. rewrite page_goes_on, app_nil_l.
        destruct (steps - (2 * (length x + i) + 1)) as [| fewer] eqn:left; [lia |].
        rewrite (greedy_step next _ Equals); [| | easy].
        2: { apply follows. pose proof (listed_carry x y proper_a i (length x + i) ltac:(lia) ltac:(lia)) as here.
             rewrite Nat.eqb_refl in here. unfold row_at, new_row. rewrite Nat.add_1_r. exact here. }
        cbn [app]. f_equal. rewrite page_turns.
        replace (map (row_at x y) (seq 0 i) ++ [row_at x y i]) with (map (row_at x y) (seq 0 (S i)))
          by (rewrite seq_S, map_app; reflexivity).
        apply hypothesis; lia. }
    intros steps enough. now apply (rows_from (length y) 0).
  - now rewrite map_length, seq_length.
  - intros i row there. rewrite nth_error_map in there.
    destruct (nth_error (seq 0 (length y)) i) as [j |] eqn:at_i; [| discriminate]. injection there as <-.
    assert (i < length y) as inside by (rewrite <- (seq_length (length y) 0); apply nth_error_Some; congruence).
    rewrite (nth_error_nth' _ 0) in at_i by (now rewrite seq_length). rewrite seq_nth in at_i by trivial.
    injection at_i as <-. cbn [plus]. now rewrite row_is, up_to_mod, is_a, is_b.
  - destruct (length y) as [| j] eqn:long; [lia |]. rewrite seq_S, map_app. cbn [map plus]. rewrite last_last, row_is.
    now rewrite number_up_to, is_a, is_b by lia.
Qed.
